"""Contract types that import-linter does not have."""

from __future__ import annotations

import sys

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class StandardLibraryOnly(Contract):
    """The listed packages import only the standard library and one another."""

    type_name = "standard_library_only"
    cores = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        cores: list[str] = list(self.cores)  # type: ignore[call-overload]
        own = {module for core in cores for module in {core, *graph.find_descendants(core)}}
        foreign = sorted(
            (importer, imported)
            for importer in own
            for imported in graph.find_modules_directly_imported_by(importer)
            if imported not in own and imported.partition(".")[0] not in sys.stdlib_module_names
        )
        return ContractCheck(kept=not foreign, metadata={"foreign": foreign})

    def render_broken_contract(self, check: ContractCheck) -> None:
        foreign: list[tuple[str, str]] = check.metadata["foreign"]
        for importer, imported in foreign:
            output.print_error(f"- {importer} -> {imported}", bold=True)


class PrivateModules(Contract):
    """Some modules of each folder in a container are private to that folder.

    Only the folder itself and the container's own modules may import them.
    """

    type_name = "private_modules"
    container = fields.StringField()
    modules = fields.ListField(subfield=fields.StringField())
    shared = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        container, private = str(self.container), set(self.modules)  # type: ignore[call-overload]
        folders = graph.find_children(container) - {f"{container}.{self.shared}"}
        foreign = sorted(
            (importer, imported)
            for folder in folders
            for imported in graph.find_descendants(folder)
            if imported.rpartition(".")[2] in private
            for importer in graph.find_modules_that_directly_import(imported)
            if importer.startswith(f"{container}.")
            and importer.rpartition(".")[0] != container
            and not importer.startswith(f"{folder}.")
        )
        return ContractCheck(kept=not foreign, metadata={"foreign": foreign})

    render_broken_contract = StandardLibraryOnly.render_broken_contract

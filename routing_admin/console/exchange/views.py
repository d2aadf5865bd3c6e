"""Pages for exporting and importing configuration files. An import is previewed before it is applied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods

from capabilities.access import request_actor
from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InvalidError, first_problems
from capabilities.json_bodies import JsonTooLargeError, check_json
from capabilities.sentences import join_words, translate_refusal, translate_sentence, translate_without_path
from routing_admin.configuration import exports, snapshot
from routing_admin.console.base.consequences import find_consequences
from routing_admin.console.base.page_responses import add_toast
from routing_admin.console.base.readings import record_configuration_export
from routing_admin.console.exchange.actions import ImportPreview, import_configuration, preview_import
from routing_admin.console.exchange.forms import MAX_FILE_BYTES, MERGE, REPLACE, ConfigFile, ImportForm, read_upload
from routing_admin.console.exchange.omissions import group_omissions
from routing_admin.console.history import phrases as words
from routing_admin.core.documents.json_lines import TextPosition, find_position, find_positions
from routing_admin.core.documents.json_path import read_document
from routing_admin.core.files.exporting import GATEWAY, Mode
from routing_admin.core.files.importing import FileFormat, detect_format


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that can be downloaded in the selected export mode, and what it omits in this mode."""

    name: str
    size: int
    left_out: tuple[str, ...]

    @property
    def filename(self) -> str:
        return f"{self.name}.json"


@require_GET
def config(request: HttpRequest) -> HttpResponse:
    """Show the page for export and import. If the mode is unknown, offer the complete files."""
    value = request.GET.get("for", Mode.FULL.value)
    mode = Mode(value) if value in set(Mode) else Mode.FULL
    state = snapshot.current()
    exported = [(name, exports.export(name, mode)) for name in exports.FILES]
    offered = [OfferedFile(name.value, len(file.text.encode()), file.left_out) for name, file in exported]
    context = {
        "mode": mode.value,
        "offered": offered,
        "omissions": (omissions := group_omissions(text for file in offered for text in file.left_out)),
        "omitted": sum(omission.count for omission in omissions),
        "revision": state.revision,
        "gateway": GATEWAY,
        "providers": len(state.configuration.providers),
        "services": len(state.configuration.services),
        "routes": len(state.configuration.routes),
        "publish_dir": settings.PUBLISH_DIR,
        "files": [ConfigFile("", "")],
        "form": ImportForm(),
        "limit": MAX_FILE_BYTES,
    }
    return render(request, "config/config.html", context)


@require_GET
def config_export(request: HttpRequest, name: str) -> HttpResponse:
    mode = request.GET.get("for", Mode.FULL.value)
    if name not in set(FileFormat) or mode not in set(Mode):
        raise Http404
    exported = exports.export(FileFormat(name), Mode(mode))
    record_configuration_export(request_actor(request), name, mode)
    answer = HttpResponse(exported.text, content_type="application/json; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}.json"'
    return answer


@require_http_methods(["GET", "POST"])
def config_import(request: HttpRequest) -> HttpResponse:
    """Show what the files would change. With `act=apply` and no problems, apply them as one revision."""
    # Reloading the page or opening a bookmark sends no files, so redirect to the page for selecting files.
    if request.method == "GET":
        return redirect("config")
    form = ImportForm(request.POST)
    form.is_valid()
    files = read_files(request)
    if not files:
        messages.error(request, _("Choose a file, or paste its text."))
        return redirect("config")
    large = [file.name for file in files if file.size > MAX_FILE_BYTES]
    if large:
        messages.error(request, _("%(names)s: too large for this page.") % {"names": join_words(large)})
        return redirect("config")
    try:
        # Check this before parsing: a file with too many values would take too much memory.
        for file in files:
            check_json(file.content.encode() if isinstance(file.content, str) else file.content)
    except JsonTooLargeError as refusal:
        messages.error(request, translate_sentence(refusal.sentence))
        return redirect("config")
    if request.POST.get("act") == "apply":
        return apply(request, form, files)
    return show(request, form, files)


def read_files(request: HttpRequest) -> list[ConfigFile]:
    files = [file for file in request.FILES.getlist("file") if isinstance(file, UploadedFile)]
    names = request.POST.getlist("name")
    pasted = [
        ConfigFile(names[index] if index < len(names) else "", text.replace("\r\n", "\n"))
        for index, text in enumerate(request.POST.getlist("text"))
        if text.strip()
    ]
    return [*(_read(file) for file in files if file.size), *pasted]


def _read(file: UploadedFile) -> ConfigFile:  # type: ignore[type-arg]
    if (file.size or 0) > MAX_FILE_BYTES:
        # Reading a file that is too large would waste memory. Its size suffices to reject it.
        return ConfigFile(file.name or "", b" " * (MAX_FILE_BYTES + 1))
    return read_upload(file)


def apply(request: HttpRequest, form: ImportForm, files: list[ConfigFile]) -> HttpResponse:
    """Apply the previewed import. Return 409 with the new changes if the configuration has changed in the meantime."""
    values = form.cleaned_data
    texts = [file.content for file in files]
    prune, expected = values.get("mode") == REPLACE, values.get("expected")
    message = values.get("message") or _("Import")
    try:
        applied = import_configuration(
            request_actor(request), texts, prune=prune, expected=expected or 0, message=message
        )
    except ConflictError as refusal:
        return show(request, form, files, status=409, note=translate_refusal(refusal))
    except InvalidError as refusal:
        return show(request, form, files, status=422, note=translate_refusal(refusal))
    count = len(applied.preview.changes)
    if applied.revision is None:
        messages.info(request, _("Nothing changed: the files match the current configuration."))
        return redirect("config")
    text = ngettext("%(count)d change applied.", "%(count)d changes applied.", count) % {"count": count}
    add_toast(request, text, applied.revision)
    return redirect("revision", applied.revision)


@dataclass(frozen=True, slots=True)
class ProblemLine:
    """A problem, with the file and the position in the file that it concerns."""

    problem: Problem
    file: str
    place: TextPosition | None

    @property
    def message(self) -> str:
        return translate_without_path(self.problem)


MAX_ALIKE = 20
"""Maximum number of further problems that a group of similar problems lists."""


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """Problems that break the same rule in the same field of different entries."""

    lines: Sequence[ProblemLine]

    @property
    def first(self) -> ProblemLine:
        return self.lines[0]

    @property
    def alike(self) -> Sequence[ProblemLine]:
        return self.lines[1:]

    @property
    def listed(self) -> Sequence[ProblemLine]:
        return self.alike[:MAX_ALIKE]

    @property
    def unlisted(self) -> int:
        return len(self.alike[MAX_ALIKE:])


def group_problems(lines: Iterable[ProblemLine]) -> list[ProblemGroup]:
    groups: dict[tuple[str, str], list[ProblemLine]] = {}
    for line in lines:
        field = re.sub(r"\[\d+\]|(?<=^routing\.)[^.]+", "*", line.problem.field)
        groups.setdefault((field, line.problem.constraint), []).append(line)
    return [ProblemGroup(lines) for lines in groups.values()]


def show(
    request: HttpRequest, form: ImportForm, files: list[ConfigFile], *, status: int = 200, note: str = ""
) -> HttpResponse:
    """Show the problems in the files, and what the files would change. The status is 422 if a file has an error."""
    mode = form.cleaned_data.get("mode") or MERGE
    preview = preview_import([file.content for file in files], prune=mode == REPLACE)
    accepted, errors = preview.imported.accepted, problem_lines(preview, files, "error")
    context = {
        "files": [(file, name_format(file)) for file in files],
        "mode": mode,
        "message": form.cleaned_data.get("message", ""),
        "note": note if accepted else "",
        "accepted": accepted,
        "errors": errors,
        "error_groups": group_problems(errors),
        "warning_groups": group_problems(problem_lines(preview, files, "warning")),
        "kept_fields": list_kept_fields(preview, files),
        "changes": words.change_lines(preview.changes),
        "effects": find_consequences(preview.imported.configuration) if accepted else (),
        **(words.compare_texts(preview.before, preview.imported.configuration) if accepted else {}),
        "revision": preview.revision or 0,
        "next": (preview.revision or 0) + 1,
    }
    return render(request, "config/import.html", context, status=status if accepted or status != 200 else 422)


def name_format(file: ConfigFile) -> str:
    document = read_document(file.content)
    file_format = detect_format(document.value) if document.readable else None
    if file_format is None:
        return ""
    return _("recognized as task routing") if file_format is FileFormat.ROUTING else _("recognized as model services")


FilePositions = list[tuple[ConfigFile, dict[str, TextPosition]]]


def _read_positions(files: list[ConfigFile]) -> FilePositions:
    return [(file, find_positions(file.text)) for file in files if read_document(file.content).value is not None]


def problem_lines(preview: ImportPreview, files: list[ConfigFile], severity: str) -> list[ProblemLine]:
    problems = [problem for problem in preview.imported.problems if problem.severity == severity]
    places_by_file = _read_positions(files)
    return [
        ProblemLine(problem, *_locate(problem.field, places_by_file, files)) for problem in first_problems(problems)
    ]


def list_kept_fields(preview: ImportPreview, files: list[ConfigFile]) -> list[tuple[str, TextPosition | None]]:
    places_by_file = _read_positions(files)
    return [(path, _locate(path, places_by_file, files)[1]) for path in preview.imported.kept_unknown]


def _locate(path: str, places_by_file: FilePositions, files: list[ConfigFile]) -> tuple[str, TextPosition | None]:
    root = path.split(".")[0].split("[")[0]
    matching = [(file, places) for file, places in places_by_file if path and root in places]
    # Prefer a file that contains the whole path of the problem to one that contains only its beginning.
    for file, places in sorted(matching, key=lambda pair: path not in pair[1]):
        return file.name, find_position(places, path)
    unreadable = next((file for file in files if read_document(file.content).value is None), None)
    return (unreadable.name if unreadable and not path else "", None)

"""Templates are rendered without the indentation that makes their source readable."""

from __future__ import annotations

from django.template.loader import get_template
from django.template.loaders.filesystem import Loader

from routing_admin.console.base.template_loader import INDENTATION


def test_template_loader_removes_indentation_and_keeps_lines() -> None:
    template = get_template("routes/list.html").template
    source = Loader(template.engine).get_contents(template.origin)
    assert "\n          " in source
    assert template.source == INDENTATION.sub("", source)
    assert template.source.count("\n") == source.count("\n")
    assert not [line for line in template.source.splitlines() if line.startswith(" ")]

"""The URL of an agent's page is parsed into its parts, and its secret is redacted from log lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capabilities.access import make_key
from capabilities.core.providers.redaction import redact
from capabilities.core.services.agents import LINK_KIND, find_public_id, find_secret


@given(st.text(max_size=60), st.text(max_size=60))
def test_secret_of_an_agent_page_link_is_redacted(before: str, behind: str) -> None:
    text, public, _ = make_key(LINK_KIND)
    assert (find_public_id(text), len(find_secret(text))) == (public, 43)
    assert find_secret(text) not in redact(f"{before} /agent-page/{text}/{behind}")


@given(st.text())
def test_text_that_is_no_agent_page_link_has_no_id_or_secret(text: str) -> None:
    assert (find_public_id(text), find_secret(text)) == ("", "")

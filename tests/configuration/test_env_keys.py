"""Provider keys from the environment: only variables for provider keys are read, each only for its own provider."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.providers.environment import (
    PLACEHOLDERS,
    KeyNotation,
    classify_key,
    find_overrides,
    header_safe,
    key_variable,
    may_read,
    name_part,
    read_variable,
)
from capabilities.secrets import endpoint_origin
from routing_admin.configuration.keys import ALLOWED_VARIABLES, key_state
from routing_admin.core.configuration.specs import KeyKind, KeySpec, ProviderSpec
from routing_admin.environment import keep_secret
from tests.configuration.config_strategies import words

any_text = st.text(max_size=20)


def resolve_key(provider: ProviderSpec, env: dict[str, str]) -> str | None:
    override = find_overrides({provider.name: provider.env_name}).variables.get(provider.name)
    origins = {variable: [endpoint_origin(provider.endpoint)] for variable in env}
    return key_state(provider, provider.key, override, {}, origins, "", env).value


@pytest.mark.requirement("MMR-E1")
@given(any_text)
def test_variable_name_has_the_provider_name_in_upper_case_with_underscores(provider: str) -> None:
    name = name_part(provider)
    assert len(name) == len(provider.upper())
    for character, written in zip(provider.upper(), name, strict=True):
        assert written == (character if character in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" else "_")


@pytest.mark.requirement("MMR-E1")
@given(st.text(st.sampled_from("ABCLMPROVIDERKEYS_0a$"), max_size=25) | any_text, words)
def test_only_variables_for_provider_keys_yield_a_value(variable: str, secret: str) -> None:
    unnumbered = variable.rstrip("0123456789").removesuffix("_") if variable[-1:].isdigit() else variable
    allowed = unnumbered.startswith("LLM_PROVIDER_") and unnumbered.endswith("_API_KEY") and len(unnumbered) > 21
    assert (read_variable(variable, {variable: secret}) is None) or allowed
    assert read_variable(variable, {variable: secret}, [variable]) == secret
    assert read_variable(variable, {variable: ""}, [variable]) is None
    provider = ProviderSpec("p", "https://x.example/v1", "m", key=KeySpec(KeyKind.ENV, variable))
    assert resolve_key(provider, {variable: secret}) is None or may_read(variable, ALLOWED_VARIABLES)


@given(any_text)
def test_every_key_text_has_exactly_one_notation(text: str) -> None:
    """A literal key consists of printable ASCII characters, so that it can be sent in an HTTP header."""
    form = classify_key(text)
    if form is KeyNotation.LITERAL:
        assert header_safe(text)
        assert text.isascii()
        assert text.isprintable()
        assert text == text.strip()
    assert (form is KeyNotation.PLACEHOLDER) == (text in PLACEHOLDERS)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", KeyNotation.NOT_NEEDED),
        ("NOT_NEEDED", KeyNotation.NOT_NEEDED),
        ("xxx", KeyNotation.PLACEHOLDER),
        ("sk-xxx", KeyNotation.PLACEHOLDER),
        ("sk-xxx1", KeyNotation.LITERAL),
        ("my-placeholder-7f3a", KeyNotation.LITERAL),
        ("****", KeyNotation.MASKED),
        ("sk-…abcd", KeyNotation.MASKED),
        ("••••••••", KeyNotation.MASKED),
        ("${LLM_PROVIDER_A_API_KEY}", KeyNotation.REFERENCE),
        ("${HOME}", KeyNotation.REFERENCE),
        ("${}", KeyNotation.INVALID),
        ("x${HOME}", KeyNotation.INVALID),
        ("sk-a b", KeyNotation.LITERAL),
        (" sk-a", KeyNotation.INVALID),
        ("sk-a\r\nX: y", KeyNotation.INVALID),
        ("密钥", KeyNotation.INVALID),
    ],
)
def test_placeholder_or_reference_must_be_the_whole_text(text: str, form: KeyNotation) -> None:
    assert classify_key(text) is form


@pytest.mark.requirement("MMR-E1")
@given(st.dictionaries(any_text, st.none(), max_size=5))
def test_two_providers_never_share_a_variable(names: dict[str, None]) -> None:
    result = find_overrides(names)
    assert len(set(result.variables.values())) == len(result.variables)
    unnamed = {name for name in names if not name_part(name).strip("_")}
    assert set(result.nameless) == unnamed
    colliding = {name for group in result.colliding for name in group}
    assert result.variables.keys() | unnamed | colliding == names.keys()
    assert not result.variables.keys() & (unnamed | colliding)


def test_env_name_distinguishes_colliding_provider_names() -> None:
    names = {"a.b": None, "a-b": "A_B_TWO", "深度": "LLM_PROVIDER_DEEPSEEK_API_KEY", "a b": None}
    result = find_overrides(names)
    assert result.variables == {"a-b": "LLM_PROVIDER_A_B_TWO_API_KEY", "深度": "LLM_PROVIDER_DEEPSEEK_API_KEY"}
    assert result.colliding == (("a.b", "a b"),)
    assert key_variable("a.b") == "LLM_PROVIDER_A_B_API_KEY"


@pytest.mark.requirement("MMR-E1")
def test_variable_named_after_the_provider_overrides_a_referenced_variable() -> None:
    key = KeySpec(KeyKind.ENV, "LLM_PROVIDER_SHARED_API_KEY")
    provider = ProviderSpec("p", "https://x.example/v1", "m", key=key)
    shared, named = {"LLM_PROVIDER_SHARED_API_KEY": "shared"}, {"LLM_PROVIDER_P_API_KEY": "own"}
    assert resolve_key(provider, shared | named) == "own"
    assert resolve_key(provider, shared | {"LLM_PROVIDER_P_API_KEY": ""}) == "shared"
    assert resolve_key(provider, {}) is None


def test_concurrently_starting_processes_agree_on_a_secret(tmp_path: Path) -> None:
    path, start = tmp_path / "secret_key", threading.Barrier(8)

    def begin(number: int) -> str:
        start.wait()
        return keep_secret(path, f"secret {number}")

    with ThreadPoolExecutor(8) as threads:
        secrets = set(threads.map(begin, range(8)))
    assert secrets == {path.read_text()}
    assert [path_entry.name for path_entry in tmp_path.iterdir()] == ["secret_key"]
    assert path.stat().st_mode & 0o777 == 0o600

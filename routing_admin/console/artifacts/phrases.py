"""Sentences and labels on the pages of artifacts: evidence for a type, content policies and errors."""

from __future__ import annotations

from collections.abc import Mapping

from django.template.defaultfilters import filesizeformat
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from artifacts.core.errors import ArtifactError, StorageFullError, StoreUnavailableError, TooLargeError
from capabilities.core.delivery.obstacles import SENTENCES, Reason, ReasonCode
from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.translatable import insert_facts
from capabilities.labels import label_facts
from capabilities.sentences import translate_sentence

Text = str | Promise

STEPS: Mapping[str, Text] = {
    "declared": pgettext_lazy("evidence", "Declared"),
    "extension": pgettext_lazy("evidence", "File name"),
    "signature": pgettext_lazy("evidence", "Signature"),
    "container": pgettext_lazy("evidence", "Inside"),
    "libmagic": pgettext_lazy("evidence", "libmagic"),
    "text": pgettext_lazy("evidence", "Text"),
    "markup": pgettext_lazy("evidence", "Markup"),
    "bytes": pgettext_lazy("evidence", "Bytes"),
    "verdict": pgettext_lazy("evidence", "Verdict"),
}

EVIDENCE: Mapping[str, Text] = {
    "declared": gettext_lazy("as declared by the uploader"),
    "undeclared": gettext_lazy("no usable type was declared"),
    "extension": gettext_lazy("by the file name's extension"),
    "signature": gettext_lazy("confirmed by the content: a signature with a valid structure"),
    "signature_hint": gettext_lazy("starts like it, but the structure is not valid"),
    "container": gettext_lazy("by what is inside the container"),
    "libmagic": gettext_lazy("libmagic's guess from the first bytes"),
    "text": gettext_lazy("every byte decodes, no NUL, few control characters"),
    "text_guessed": gettext_lazy(
        "every byte decodes, but other encodings fit nearly as well; this one is the most likely"
    ),
    "no_text": gettext_lazy("not text in any encoding that was tried"),
    "markup": gettext_lazy("by how the text begins"),
    "empty": gettext_lazy("the file has no content to check"),
    "kept": gettext_lazy("the content proves no other type, so the declared information decides"),
    "overruled": gettext_lazy("the content proves a different type than declared, so the content decides"),
    "agrees": gettext_lazy("the declared information and the content agree"),
    "bytes": gettext_lazy("nothing was declared, so the content decides"),
    "unknown": gettext_lazy("neither the declared information nor the content reveals the type"),
    "corrected": gettext_lazy("corrected by a person"),
    "corrected_lossy": gettext_lazy("corrected by a person, but some bytes are not valid in this encoding"),
    "failed": gettext_lazy("the content could not be checked, so the declared information decides"),
}
"""Translations of the reasons in `evidence.REASONS`. A test checks that none is missing."""

POLICIES: Mapping[ContentPolicy, Text] = {
    ContentPolicy.EXTRACT: gettext_lazy("text extraction is on"),
    ContentPolicy.CONVERT: gettext_lazy("image conversion is on"),
    ContentPolicy.NATIVE_ONLY: gettext_lazy("only models that take the file as it is"),
    ContentPolicy.DESCRIBER: gettext_lazy("a model describes what cannot be read"),
    ContentPolicy.QUESTION: gettext_lazy("that model also gets the question"),
}

UNREADABLE: Mapping[str, Text] = {
    "artifact_missing": gettext_lazy(
        "The content is missing from the store. Upload the file again to restore its reference."
    ),
    "artifact_corrupt": gettext_lazy("The stored content is damaged. Upload the file again to restore its reference."),
}


def reason_sentence(reason: Reason) -> str:
    """Return the translated reason why a file is delivered in this form. It names capabilities by label and id."""
    return insert_facts(_(SENTENCES[reason.code]), label_facts(reason.facts))


def is_gone(reason: Reason) -> bool:
    """Return whether the stored bytes cannot be read, so that no model can receive them."""
    return reason.code is ReasonCode.UNREADABLE


def refusal_sentence(error: ArtifactError) -> str:
    if isinstance(error, TooLargeError):
        limit = {"limit": filesizeformat(error.limit)}
        return _("The file is larger than the limit of %(limit)s. Send a smaller one or raise the limit.") % limit
    if isinstance(error, StorageFullError) and error.agent:
        sizes = {"agent": error.agent, "used": filesizeformat(error.used), "quota": filesizeformat(error.quota or 0)}
        return _("%(agent)s has used %(used)s of the %(quota)s each agent may store.") % sizes
    if isinstance(error, StorageFullError):
        return _("The artifact store is full. Delete artifacts or give it more space, then send the file again.")
    if isinstance(error, StoreUnavailableError):
        return translate_sentence(error.details)
    return _("The upload could not be read completely. Send it again.")

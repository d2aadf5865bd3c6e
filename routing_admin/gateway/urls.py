"""URLs of the data plane, and URL patterns for common mistakes, whose error names the correct URL."""

from __future__ import annotations

from django.urls import path

from routing_admin.gateway import files, models
from routing_admin.gateway.chat.completions import completions
from routing_admin.gateway.gemini import endpoints as gemini
from routing_admin.gateway.messages.endpoints import count_tokens, messages
from routing_admin.gateway.passthrough.endpoints import OPERATION_APIS, make_view
from routing_admin.gateway.responses.endpoints import input_tokens, responses
from routing_admin.gateway.unknown_urls import BELOW_V1, BESIDE_V1, OTHERS_BELOW_V1, unless_posted

app_name = "gateway"
urlpatterns = [
    path("v1/chat/completions", completions, name="chat"),
    path("v1/messages", messages, name="messages"),
    path("v1/responses", responses, name="responses"),
    *(path(api.path[1:], make_view(api), name=name.replace("-", "_")) for name, api in OPERATION_APIS.items()),
    path("v1/messages/count_tokens", count_tokens, name="count_tokens"),
    path("v1/responses/input_tokens", input_tokens, name="input_tokens"),
    # These must precede the URL of a single model, whose name may contain slashes and colons.
    path("v1beta/models/<path:name>:generateContent", gemini.generate, name="gemini"),
    path("v1beta/models/<path:name>:streamGenerateContent", gemini.generate, name="gemini_stream"),
    path("v1beta/models/<path:name>:countTokens", gemini.count_tokens, name="gemini_count"),
    path("v1/files", files.files, name="files"),
    path("v1/files/<str:ref>", files.file, name="file"),
    path("v1/files/<str:ref>/content", files.content, name="file_content"),
    path("v1/models", models.models, name="models"),
    *BELOW_V1,
    path("v1beta/models", models.gemini_models, name="gemini_models"),
    path("v1beta/models/<path:name>", unless_posted(models.gemini_model), name="gemini_model"),
    path("v1/models/<path:name>", unless_posted(models.model), name="model"),
    OTHERS_BELOW_V1,
    *BESIDE_V1,
]

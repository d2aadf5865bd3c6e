"""Database models, such as routes, revisions, request log, alerts, file descriptions, fire drills and settings."""

from routing_admin.models.alerts import Alert
from routing_admin.models.descriptions import FileDescription
from routing_admin.models.drills import FireDrill
from routing_admin.models.history import AuditEvent, Revision
from routing_admin.models.installation import Installation, LabelBudget, Language
from routing_admin.models.people import AdminToken, LinkedIdentity, Person, SessionSighting, SignInAttempt
from routing_admin.models.refusals import LearnedRefusal
from routing_admin.models.requests import AttemptLog, IdempotencyRecord, KeptAnswer, RejectedCall, RequestLog
from routing_admin.models.routes import Alias, Candidate, TaskRoute
from routing_admin.models.usage import LimitShare, LimitWindow, UsageRollup, UsageSum

__all__ = [
    "AdminToken",
    "Alert",
    "Alias",
    "AttemptLog",
    "AuditEvent",
    "Candidate",
    "FileDescription",
    "FireDrill",
    "IdempotencyRecord",
    "Installation",
    "KeptAnswer",
    "LabelBudget",
    "Language",
    "LearnedRefusal",
    "LimitShare",
    "LimitWindow",
    "LinkedIdentity",
    "Person",
    "RejectedCall",
    "RequestLog",
    "Revision",
    "SessionSighting",
    "SignInAttempt",
    "TaskRoute",
    "UsageRollup",
    "UsageSum",
]

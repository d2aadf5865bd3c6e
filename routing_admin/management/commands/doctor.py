"""Check an installation for problems."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from artifacts import extract, sniffer
from artifacts.core.errors import StoreUnavailableError
from capabilities.core.providers.catalogue import default_catalogue
from routing_admin.configuration import integrity, rows, snapshot
from routing_admin.configuration.catalogue_versions import find_catalogue
from routing_admin.console.routes.queries import list_statuses, list_unable
from routing_admin.core.configuration.checks import check_describers
from routing_admin.core.configuration.removals import ModelEnd, list_ends
from routing_admin.core.configuration.specs import EMPTY
from routing_admin.core.files.keys import MissingConfigurationError, configuration_from_env
from routing_admin.limits.prices.sheet import sheet_of
from routing_admin.management import command
from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.redis.link import link, url_location
from routing_admin.platform.server.resources import find_descriptor_shortage, raise_descriptor_limit
from routing_admin.request_log.limit_uses import list_uncounted


class Command(command.Command):
    help = "Check databases, configuration, history, keys and every artifact's content. Exit status 1 if one fails."

    def run(self, **options: Any) -> None:
        """Print a line for each check and each problem, without changing anything."""
        failed = 0
        for name, check in integrity.CHECKS.items():
            try:
                problems = check()
            # A check that cannot run counts as failed, but the other checks still run.
            except DatabaseError as failure:
                problems = [f"cannot be checked: {explain_failure(failure) or failure}"]
            except StoreUnavailableError as failure:
                problems = [f"cannot be checked: {failure.details}"]
            self.stdout.write(f"{'bad' if problems else 'ok ':<4} {name}")
            for problem in problems:
                self.stderr.write(f"     {name}: {problem}")
            failed += bool(problems)
        self.stdout.write(f"ok   artifacts are in: {settings.ARTIFACTS_BUCKET or 'the data directory'}")
        # Redis is optional, but counts as a failed check if it is configured and cannot be reached.
        failed += self._look_at_redis()
        limit = raise_descriptor_limit()
        shortage = find_descriptor_shortage()
        self.stdout.write(f"warn open files: {shortage}" if shortage else f"ok   open files: {limit} in each process")
        self.stdout.write(f"ok   file types: {sniffer.describe_sniffer()}")
        weaknesses = "; ".join(extract.weaknesses())
        self.stdout.write(
            f"warn file readers: {weaknesses}" if weaknesses else "ok   file readers: confined by the kernel"
        )
        self.stdout.write(f"ok   pages of other origins: {', '.join(settings.CORS_ORIGINS) or 'none allowed'}")
        self._name_retired_models()
        self._warn_of_routes_and_budgets()
        if failed:
            self.stderr.write(f"{failed} of {len(integrity.CHECKS) + 1} checks failed.")
            sys.exit(1)

    def _look_at_redis(self) -> bool:
        outage = link().look() if link().is_set else None
        found = f"responds at {url_location(link().url)}" if link().is_set else "not set, and not needed"
        self.stdout.write("bad  redis" if outage else f"ok   redis: {found}")
        if outage:
            self.stderr.write(f"     redis: {outage.sentence}")
        return outage is not None

    def _name_retired_models(self) -> None:
        # List each configured model that is retired or soon will be. This does not count as a failed check, because the
        # catalogue may be wrong.
        today = timezone.localdate()
        ends = _configured_ends()
        if not ends:
            self.stdout.write("ok   models: none known to be retired")
        for location, end in ends:
            label = "late" if end.retirement.day <= today else "soon"
            self.stdout.write(f"{label} models: {describe_end(location, end, gone=label == 'late')}")

    def _warn_of_routes_and_budgets(self) -> None:
        try:
            state = snapshot.current()
            standings = list_statuses(state)
            uncounted = list_uncounted(state.configuration, state.exchange)
        except DatabaseError:
            return  # The database check above has already reported the error.
        unable = list_unable(standings)
        names = f": {', '.join(unable)}" if unable else ""
        label = "warn" if unable else "ok  "
        self.stdout.write(f"{label} routes: {len(unable)} of {len(standings)} cannot answer{names}")
        for (holder, meter), count in sorted(uncounted.items()):
            sentence = (
                f"{holder} {meter}: {count} calls without a known price passed uncounted; set prices, or its `unpriced`"
            )
            self.stdout.write(f"warn budgets: {sentence}")
        if not uncounted:
            self.stdout.write("ok   budgets: no call passed uncounted")
        self._name_contested_prices(state)
        for problem in check_describers(state.configuration, state.configuration):
            self.stdout.write(f"warn routes: {problem.message}")

    def _name_contested_prices(self, state: snapshot.Snapshot) -> None:
        models = sorted(
            {(service.provider, service.model) for service in state.configuration.services if service.enabled}
        )
        contested = [model for model in models if sheet_of(state).find_contested(*model)]
        for provider, model in contested:
            self.stdout.write(f"warn prices: lists differ on {provider}/{model}; set its price on the service's page")
        if not contested:
            self.stdout.write("ok   prices: no price in use is contested")


def _configured_ends() -> list[tuple[str, ModelEnd]]:
    try:
        configuration = rows.read()
        catalogue = find_catalogue(configuration.catalogue)
    except DatabaseError:
        configuration, catalogue = EMPTY, default_catalogue()
    configured = list_ends(configuration, catalogue)
    try:
        single = list_ends(configuration_from_env(os.environ), catalogue)
    except MissingConfigurationError:
        single = ()
    return [("LLM_MODEL", end) for end in single] + [("", end) for end in configured]


def describe_end(location: str, end: ModelEnd, *, gone: bool) -> str:
    retirement, name = end.retirement, f"{location} " if location else ""
    verb = "was retired on" if gone else "is served until"
    text = f"{name}{end.provider}/{end.model} {verb} {retirement.day} ({retirement.source})"
    if not retirement.successor:
        return text
    return f"{text}; its vendor recommends {retirement.successor} ({retirement.successor_source})"

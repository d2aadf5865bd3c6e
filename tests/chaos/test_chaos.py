"""A short run of the chaos tests: each scenario works and finds no loss."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.hostile import ATTACKS
from tests.chaos.hostile_stage import make_attacks
from tests.chaos.kills import kill_again_and_again
from tests.chaos.soak import Sample, verdicts


def test_kill_loses_no_acknowledged_data():
    """This test kills one server; `make chaos` kills sixty or more."""
    finding = kill_again_and_again(1)
    assert finding.losses == ()


def test_attack_that_exceeds_its_limits_is_reported(capsys):
    """`python -m tests.chaos hostile` runs all attacks."""
    finding = make_attacks([replace(ATTACKS[0], megabytes=-1, seconds=-1)])
    assert [loss.split(",")[-1].split(" allowed")[0][:14] for loss in finding.losses] == [" -1", " -1 more than "]
    assert "hostile clients and providers" in capsys.readouterr().out


def test_resource_growth_is_distinguished_from_flat_usage():
    """Growth is found by comparing the medians of the second and the last third."""
    samples = [Sample(float(second), (100.0 + 3 * second, 50.0, 10.0 + second % 2, 4.0)) for second in range(20)]
    assert [row[3] for row in verdicts(samples)] == ["grown", "flat", "flat", "flat"]

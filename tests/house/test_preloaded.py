"""Programs that are forked from the preloaded helper process run like programs that Python starts."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.preloaded import run_python, start_program


def test_forked_program_has_its_own_arguments_environment_and_exit_status() -> None:
    code = "import os, sys; print(sys.argv, os.environ['OWN'], 'HOME' in os.environ); sys.exit('why')"
    result = run_python({"OWN": "value"}, "-c", code, "one")
    assert (result.returncode, result.stdout, result.stderr) == (1, "['-c', 'one'] value False\n", "why\n")


def test_preloaded_modules_do_not_depend_on_settings() -> None:
    code = "import sys; from django.conf import settings as s; print(s.configured, 'ninja' in sys.modules)"
    assert run_python(os.environ, "-c", code).stdout == "False False\n"


def test_signal_terminates_a_forked_program() -> None:
    command = [sys.executable, "-c", "import time; print('started', flush=True); time.sleep(600)"]
    with start_program(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "started\n"
        program.terminate()
    assert program.returncode == -15

import click
import pytest

import scripts.commands.configs
from scripts.cli import COMMANDS, main
from scripts.console import CheckFailed


def bad(outcome):
    """Return the message of an outcome that reports bad input: one line on stderr, nothing else."""
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("trncore: ")
    assert outcome.err.count("\n") == 1
    return outcome.err


def test_help_lists_every_command(trncore):
    outcome = trncore("--help")
    assert outcome.status == 0
    assert all(f"\n  {name} " in outcome.out for name in COMMANDS)


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS), ("demo", "digits")])
def test_every_help_has_an_example(trncore, command):
    outcome = trncore(*command, "--help")
    assert outcome.status == 0
    assert f"Example:\n    trncore {' '.join(command)}".rstrip() in outcome.out or command == ()
    assert "Example:" in outcome.out


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "Missing command"),
    (("nonsense",), "No such command 'nonsense'"),
    (("configs", "--nonsense"), "No such option"),
    (("gemm",), "Missing argument"),
    (("demo",), "Missing command"),
])
def test_wrong_usage_is_one_line(trncore, arguments, message):
    assert message in bad(trncore(*arguments))


@pytest.mark.parametrize(("error", "status", "message"), [
    (ValueError("rows must be\nin 1..128"), 2, "trncore: rows must be in 1..128\n"),
    (TypeError("rows must be an integer"), 2, "trncore: rows must be an integer\n"),
    (FileNotFoundError(2, "No such file or directory", "A.npy"), 2,
     "trncore: A.npy: No such file or directory\n"),
    (CheckFailed("bits differ"), 1, "trncore: bits differ\n"),
    (RuntimeError("the simulator broke down"), 1, "trncore: the simulator broke down\n"),
    (AssertionError("the bus rule"), 1, "trncore: the bus rule\n"),
    (KeyboardInterrupt(), 130, "\n"),
])
def test_errors_become_exit_status_and_one_line(trncore, monkeypatch, error, status, message):
    @click.command()
    def broken():
        raise error

    monkeypatch.setattr(scripts.commands.configs, "command", broken)
    assert trncore("configs") == (status, "", message)


def test_a_bug_keeps_its_traceback(monkeypatch):
    @click.command()
    def broken():
        raise KeyError("x")

    monkeypatch.setattr(scripts.commands.configs, "command", broken)
    with pytest.raises(KeyError):
        main(["configs"])

"""What the tools say of their way, and of Ctrl-C."""

from progress import status_of


def test_ctrl_c_is_one_sentence(capsys):
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert status_of(interrupted) == 130
    assert capsys.readouterr().err == "Stopped; the same command goes on.\n"
    assert status_of(lambda: 3) == 3

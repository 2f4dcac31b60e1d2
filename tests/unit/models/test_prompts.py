"""Prompt files: every placeholder has a value, every value a placeholder, and no mail can leave its marks."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farandole.errors import ConfigurationError
from farandole.models import prompts


@dataclass
class Mail:
    subject: str
    size: int = 3


def written(folder: Path, text: str) -> prompts.Prompt:
    file = folder / "judge.md"
    file.write_text(text, encoding="utf-8")
    prompts.load.cache_clear()
    return prompts.load(file)


def test_a_prompt_is_a_stable_part_and_a_filled_one(tmp_path: Path) -> None:
    prompt = written(tmp_path, "Judge mails.\n---\nSize {{ mail.size }}: {{ mail.subject }}\n")
    filled = prompt.fill({"mail": Mail("hello {{ mail.size }}")})
    assert prompt.system.startswith("Judge mails.")
    assert filled.startswith("Size 3: <data mail.subject id=")
    assert "hello {{ mail.size }}" in filled  # what a mail says is no template


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("a\n---\n\nb {{ mail }}", {}, r"judge\.md:4: no value for \{\{ mail \}\}"),
        ("a\n---\nb {{ mail }}", {"mail": "x", "more": 1}, "more="),
        ("a\n---\nb {{ mail.sender }}", {"mail": Mail("x")}, r"judge\.md:3: .*Mail has no 'sender'"),
    ],
)
def test_values_and_placeholders_must_agree(tmp_path: Path, text: str, values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        written(tmp_path, text).fill(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no line", "---"),
        ("a {{ mail }}\n---\nb", "above the line"),
        ("a\n---\nb {{ mail", r"judge\.md:3"),
        ("a\n---\n", "below"),
    ],
)
def test_a_file_that_is_written_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        written(tmp_path, text)


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path))):
        prompts.load(tmp_path / "gone.md")


@given(st.text() | st.from_regex(r"</data id=[0-9a-f]{12}>", fullmatch=True))
def test_no_text_can_hold_its_own_closing_mark(text: str) -> None:
    prompt = prompts.Prompt(Path("judge.md"), "", "{{ mail }}")
    filled = prompt.fill({"mail": text})
    closing = filled.rpartition("\n")[2]
    assert re.fullmatch(r"</data id=[0-9a-f]{12}>", closing)
    assert filled.count(closing) == 1
    filled.encode()

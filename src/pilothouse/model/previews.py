"""The preview of a request and the labels of its options.

A user decides on the whole request. So every surface shows the members of the tool's input that the preview leaves out,
except those that only describe the call or limit it. An option is labelled by its kind; the agent's own name for it is
never the label.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from .diffs import HUNK_HEADER, list_changed_lines
from .records import ApprovalPreview, CommandPreview, DiffPreview, Option
from .tools.commands import (
    find_commands,
    find_other_texts,
    is_file_member,
    is_remark,
    is_significant_member,
    list_other_members,
    simplify_key,
)

KIND_LABELS = {
    "allow_once": "Allow once",
    "allow_always": "Always allow",
    "reject_once": "Deny",
    "reject_always": "Always deny",
}

MAX_NAME = 4000
"""Characters of a name that are read, half of them from its end; a button does not show the rest of a longer one."""
# Words for yes and no on buttons, in the languages and signs that agents use; `*` stands for any ending. They are
# compared without case, accents and separators.
_NO_WORDS = """
no nope nah not dont don't deny denied denies denying reject* refuse* decline* cancel* abort* stop* block* never
disallow* forbid* skip* dismiss* close ignore* disagree* undo exit quit back nothing halt* prevent* prohibit* veto*
discard* nein nicht nie niemals ablehn* abbrech* abbruch verweiger* verbiet* zurück
non refus* annul* rejet* interdi* jamais bloque* arrêt*
rechaz* deneg* nega* nunca bloque* deten* nunca
rifiut* blocca*
não recus* rejeit* nunca
nej avbryt* neka* avvisa* aldrig inte nee weiger* nie odrzu* anuluj* hayır reddet* iptal*
нет не отклон* отмен* запрет* запрещ* отказ* стоп никогда
"""
_YES_WORDS = """
yes yep yeah yup ok okay allow* approve* accept* proceed* run grant* confirm* trust* permit* agree* sure lgtm
authoriz* authoris* affirmative execute*
ja erlaub* zulass* zustimm* genehmig* akzeptier*
oui autoris* accept* approuv* permet* accord
sí permit* acept* aprob*
si consent* accett* approv*
sim permit* aceit* aprov*
tillåt* godkän* zezw* evet
да разреш* одобр* принять принимаю соглас*
"""
# with a word for no next to them, these say how often it holds or what follows
_WEAK_YES_WORDS = "always continue* immer toujours siempre sempre alltid всегда"
# without spaces between words
_NO_SIGNS = """
不允许 不允許 不同意 不接受 不批准 不继续 拒绝 拒絕 取消 否 不 禁止 停止
許可しない 承認しない いいえ 拒否 キャンセル 中止 却下
허용안함 허용하지않음 아니 거부 취소 거절 중지 금지
\u274c \u2716 \u2717 \u2718 \u2715 \u2612 \u274e \U0001f6ab \u26d4 \U0001f44e \U0001f6d1 \U0001f645
"""
_YES_SIGNS = """
允许 允許 同意 是 批准 确认 確認 接受 继续 好 はい 許可 承認 예 네 허용 승인 동의
\u2705 \u2714 \u2713 \u2611 \U0001f44d \U0001f44c \U0001f197 \U0001f646
"""
_PHRASES = r"go ahead|do it|let'?s go"
# "and don't ask again for …" is about questions, not about the answer
_ABOUT_ASKING = re.compile(
    r"(?<![^\W_])(?:don'?t|do not|never|stop|without|not) ask(?:ing)?(?: me)?(?: again)?"
    r"(?: for (?:commands that start with )?(?:`[^`\n]{0,4000}`|[^`,.;:!?\n]{1,200}))?(?![^\W_])"
)
# Cyrillic and Greek letters that look Latin
_LOOKALIKES = str.maketrans(
    "аеорсхуіѕԁһкАВЕКМНОРСТХοναιτρυđðłøıɑɡᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "aeopcxyisdhkABEKMHOPCTXovaitpuddloiagabcdeghijklmnoprstuvwyz",
)
_LETTER_SIGNS = {first + index: chr(ord("a") + index) for first in (0x1F150, 0x1F170, 0x1F1E6) for index in range(26)}
_QUOTES = {ord(quote): "'" for quote in "\u2018\u2019\u201a\u201b\u02bc\u2032\u00b4"}
_DIGITS = str.maketrans("0345$@", "oeassa")
_WORD = re.compile(r"(?:[^\W_]|[$@])+")
_SINGLE_LETTERS = re.compile(r"(?<![^\W_])[^\W_](?:[\W_]{1,3}[^\W_](?![^\W_]))+")
# Control characters except tab and line feed; zero-width, bidirectional and blank characters; unusual spaces; marks
# that strike through or enclose a character; private characters, which every font draws in its own way.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ud800-\udfff\U00013430-\U00013438"
    "\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u0334-\u0338\u0488\u0489\u1abe\u20d2\u20d3\u20d8-\u20da\u20dd-\u20e0\u20e2-\u20e6\u20ea\u20eb\ua670-\ua672"
    "\ue000-\uf8ff\U000f0000-\U0010ffff]"
)
# what may be a combining mark; `_is_stray_mark` has the last word
_MARK = re.compile(
    r"(?!\w)[\u0300-\u036f\u0483-\u1cff\u1dc0-\u1dff\u20d0-\u20f0\u2cef-\u2dff\u302a-\u309a\ua66f-\uabed\ufb1e"
    r"\ufe20-\ufe2f\U000101fd-\U0001e94a]"
)
_MOST_MARKS = 3
"""Combining marks that a letter of a living language has; more of them cover the lines above and below."""
# an emoji may be followed by a variation selector, or be joined to the next one
_EMOJI_JOIN = re.compile(
    "(?<=[\u203c-\u2bff\U0001f000-\U0001faff])\ufe0f"
    "|(?<=[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff])"
)


def label_option(option: Option) -> Option:
    """Return the option with a label for its kind, and flag an agent's name that says the opposite."""
    label = KIND_LABELS.get(option.kind) or ("Allow" if option.kind.startswith("allow") else "Deny")
    says_no, says_yes = _read_answers(option.name)
    is_misleading = says_no if option.kind.startswith("allow") else says_yes
    return Option(
        option_id=option.option_id, name=option.name, kind=option.kind, label=label, is_misleading=is_misleading
    )


def _read_answers(name: str) -> tuple[bool, bool]:
    """Whether a name says no and whether it says yes; it may say both."""
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME // 2]} {name[-MAX_NAME // 2 :]}"
    visible = _INVISIBLE.sub("", name.translate(_LETTER_SIGNS))
    plain = _fold(visible)
    texts = {plain, _fold(visible.translate(_LOOKALIKES))}
    for text in tuple(texts):
        texts.add(_SINGLE_LETTERS.sub(lambda found: re.sub(r"[\W_]", "", found[0]), text))
    for text in tuple(texts):
        texts |= {_replace_digits(text, one) for one in "li"}
    words = _load_words()
    says_no = says_yes = False
    for text in texts:
        without = _ABOUT_ASKING.sub(" ", text)
        is_no = words.no.search(without) is not None or any(sign in plain for sign in words.no_signs)
        rest = words.negated.sub(" ", without)
        is_yes = words.yes.search(rest) is not None or _has_yes_sign(plain)
        says_no, says_yes = says_no or is_no, says_yes or is_yes
        if not is_no and words.weak_yes.search(rest) is not None:
            says_yes = True
    return says_no, says_yes


def _fold(text: str) -> str:
    """A text without case, accents, unusual quotes and underscores."""
    parts = unicodedata.normalize("NFKD", text).translate(_QUOTES)
    plain = "".join(one for one in parts if not unicodedata.category(one).startswith("M"))
    return re.sub(r"[\s_]+", " ", plain.casefold())


def _replace_digits(text: str, one: str) -> str:
    """Letters in place of the digits and signs that stand for them inside of words; `one` stands for 1."""

    def replace(found: re.Match[str]) -> str:
        word = found[0]
        if word.isalpha() or not any(letter.isalpha() for letter in word):
            return word
        return word.translate(_DIGITS).replace("1", one)

    return _WORD.sub(replace, text)


def _has_yes_sign(text: str) -> bool:
    words = _load_words()
    for sign in words.no_signs:
        text = text.replace(sign, " ")
    return any(sign in text for sign in words.yes_signs)


def _words(words: str) -> str:
    return "|".join(re.escape(word).replace(r"\*", r"[^\W_]*") for word in sorted(set(_fold(words).split())))


def _match(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])")


class _Words(NamedTuple):
    no: re.Pattern[str]
    yes: re.Pattern[str]
    weak_yes: re.Pattern[str]
    negated: re.Pattern[str]
    """"don't allow" says no and not yes"""
    no_signs: list[str]
    yes_signs: list[str]


@cache
def _load_words() -> _Words:
    """The words as patterns. Compiling them takes milliseconds, which no program should spend on its start."""
    yes = _words(_YES_WORDS)
    return _Words(
        no=_match(_words(_NO_WORDS)),
        yes=_match(f"{yes}|{_PHRASES}"),
        weak_yes=_match(_words(_WEAK_YES_WORDS)),
        negated=_match(
            rf"(?:don'?t|do not|not|never|no|nicht|non|ne pas|nao|не) (?:{yes})|(?:{yes}) (?:nicht|inte|niet)"
        ),
        no_signs=[_fold(sign) for sign in _NO_SIGNS.split()],
        yes_signs=[_fold(sign) for sign in _YES_SIGNS.split()],
    )


def quote_code(text: str) -> str:
    """Text as inline code: the run of backticks around it is longer than any inside, so it cannot end it early."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def make_visible(text: str) -> str:
    """Show characters that hide, reorder or cover others by their code, in text that a user reads before a decision."""
    if text.isascii() and text.isprintable():
        return text
    joins = {found.start() for found in _EMOJI_JOIN.finditer(text)}

    def show(found: re.Match[str]) -> str:
        at = found.start()
        is_hidden = at not in joins if found["hidden"] else _is_stray_mark(text, at)
        return f"⟨U+{ord(found[0]):04X}⟩" if is_hidden else found[0]

    return _SUSPECT.sub(show, text)


_SUSPECT = re.compile(f"(?P<hidden>{_INVISIBLE.pattern})|{_MARK.pattern}")


def _is_stray_mark(text: str, at: int) -> bool:
    """Whether a character is a combining mark that does not belong to a letter, or is one too many on it."""
    if not unicodedata.category(text[at]).startswith("M"):
        return False
    for before in reversed(text[max(at - _MOST_MARKS, 0) : at]):
        if before.isalpha():
            return False
        if not unicodedata.category(before).startswith("M"):
            return True
    return True


_PATHS = ("path", "paths", "file", "files", "filename", "uri")
_EDITS = ("edits", "changes")
# members of one edit besides its path and its texts
_EDIT_PARTS = frozenset({"add", "update", "delete", "type", "unifieddiff"})
# texts that are no part of a file
_PROSE = frozenset({"prompt", "message", "question"})
_ID = re.compile(r"[\w:.-]{1,80}")
# members of a question, and of one of its options
_QUESTION_TEXTS = ("question", "text", "prompt")
_QUESTION_OPTIONS = ("options", "choices", "follow_up")
_QUESTION = frozenset({"header", "multiselect", "multiple", "id", "type"})
_OPTION = frozenset({"label", "value", "text", "name", "id", "description"})
_NOTHING: tuple[Any, ...] = (None, "", False, [], {})


# -- diffs --------------------------------------------------------------------------------------------------------


class DiffSection(NamedTuple):
    """One file of a unified diff. Without `lines` its change is not shown. `path` is None before the first header."""

    path: str | None
    is_created: bool
    lines: list[str]
    """The hunk headers and what is below them."""


def split_sections(diff: str) -> list[DiffSection]:
    """The files of a diff. Lines of a hunk are counted: a removed `-- x` is not the name of a file."""
    sections: list[DiffSection] = []
    lines = diff.split("\n")
    if lines[-1] == "":
        lines.pop()
    old = new = index = 0
    is_counted = True
    while index < len(lines):
        line = lines[index]
        is_within = old > 0 or new > 0
        if not is_within and _is_header(lines, index, is_counted):
            before, after = line[4:], lines[index + 1][4:]
            path = re.sub(r"^[ab]/", "", before if after == "/dev/null" else after)
            sections.append(DiffSection(path, before == "/dev/null", []))
            is_counted = True
            index += 2
            continue
        if is_within:
            old -= line[:1] not in ("+", "\\")
            new -= line[:1] not in ("-", "\\")
        elif line.startswith("@@"):
            header = HUNK_HEADER.match(line)
            is_counted = header is not None
            old, new = (int(header[1] or 1), int(header[2] or 1)) if header is not None else (0, 0)
        if not sections:
            sections.append(DiffSection(None, False, []))
        sections[-1].lines.append(line)
        index += 1
    return sections


def _is_header(lines: list[str], index: int, is_counted: bool) -> bool:
    """Whether two lines are the names of a file. Within a hunk that does not say its length a hunk must follow them."""
    if not lines[index].startswith("--- ") or not "".join(lines[index + 1 : index + 2]).startswith("+++ "):
        return False
    return is_counted or "".join(lines[index + 2 : index + 3]).startswith("@@")


# -- members of an input ------------------------------------------------------------------------------------------


def list_unshown_members(raw: object, preview: ApprovalPreview | None, root: str | None = None) -> dict[str, Any]:
    """The members of an input that a preview of a command or a change does not show. `root` is the session's directory.

    For any other preview these are all members, except one that is the whole preview.
    """
    if not isinstance(raw, Mapping):
        return {}
    if isinstance(preview, CommandPreview):
        others = list_other_members(raw)
        moved = split_command(preview.command, raw)[1]
        return {str(key): value for key, value in raw.items() if str(key) in others or str(key) in moved}
    if isinstance(preview, DiffPreview):
        sections = split_sections(preview.diff)
        root = find_root(preview.path, sections) if root is None else root
        names = frozenset(
            _normalize(posixpath.join(root, path)) for path in (preview.path, *(one.path for one in sections)) if path
        )
        changed = [line[1:] for line in list_changed_lines(preview.diff)]
        return {str(key): value for key, value in raw.items() if not _is_in_diff(key, value, names, changed, root)}
    text = preview.text.strip() if preview is not None else ""
    return {str(key): value for key, value in raw.items() if not text or str(value).strip() != text}


def split_command(command: str, raw: object) -> tuple[str, frozenset[str]]:
    """The command of a preview without the texts below it that are members of the input, and those members."""
    if not isinstance(raw, Mapping):
        return command, frozenset()
    commands = find_commands(raw)
    if command == "\n".join(dict.fromkeys(one.text for one in commands)):
        return command, frozenset()
    texts = find_other_texts(raw, commands)
    listed = "\n".join(dict.fromkeys(f"{name}: {text}" for name, text in texts))
    if not listed or not (command == listed or command.endswith(f"\n{listed}")):
        return command, frozenset()
    wanted = set(texts)
    keys = {str(key) for key, value in raw.items() if not wanted.isdisjoint(find_other_texts({key: value}, commands))}
    return command[: -len(listed)].removesuffix("\n"), frozenset(keys)


def find_root(path: str, sections: list[DiffSection]) -> str:
    """The directory to which the names in a diff are relative, by the `path` of one of its files; "" if unknown."""
    names = [one.path for one in sections if one.path and path.endswith(f"/{one.path}")]
    return path[: -len(max(names, key=len))] if names else ""


def _is_in_diff(key: object, value: object, names: frozenset[str], changed: list[str], root: str) -> bool:
    """Whether a diff shows a member, or the member changes nothing."""
    name = simplify_key(key)
    if not is_significant_member(key, value):
        return True
    if name.endswith(_PATHS) or name in _EDITS:
        return all(_is_named(one, names, root) if isinstance(one, str) else _is_edit(one) for one in _items(value))
    if name.endswith("id") and isinstance(value, str) and _ID.fullmatch(value) is not None:
        return True
    if name == "replaceall":
        return isinstance(value, bool)
    # the hub makes the diff from the texts of an edit
    if is_file_member(key) and name not in _PROSE and not is_remark(key):
        return isinstance(value, str)
    return isinstance(value, str) and _are_among(value.split("\n"), changed)


def _items(value: Any) -> list[Any]:
    """The files or edits that a member lists; some agents key them by path."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else [value]


def _is_named(path: str, names: frozenset[str], root: str) -> bool:
    return _normalize(posixpath.join(root, path.removeprefix("file://"))) in names


def _is_edit(value: Any) -> bool:
    """Whether a value has only the texts of an edit, from which the hub makes the diff."""
    if not isinstance(value, Mapping):
        return not isinstance(value, list)
    return all(
        (is_file_member(key) or simplify_key(key) in _EDIT_PARTS) and _is_edit(one) for key, one in value.items()
    )


def _are_among(lines: list[str], changed: list[str]) -> bool:
    """Whether all lines with text are changed lines."""
    known = set(changed)
    return all(line in known for line in lines if line.strip())


def _normalize(path: str) -> str:
    normal = posixpath.normpath(path)
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


# -- questions ----------------------------------------------------------------------------------------------------


def list_unshown_of_questions(raw: object) -> dict[str, Any]:
    """The members of an input that are not the questions which a tool asks its user."""
    if not isinstance(raw, Mapping):
        return {}
    questions = raw.get("questions")
    if not isinstance(questions, list):
        return _list_odd_members(raw)
    others = {str(key): value for key, value in raw.items() if key != "questions" and value not in _NOTHING}
    odd = [_list_odd_members(one) if isinstance(one, Mapping) else {} for one in questions]
    return {**({"questions": [one for one in odd if one]} if any(odd) else {}), **others}


def _list_odd_members(question: Mapping[Any, Any]) -> dict[str, Any]:
    """The members of a question that are not part of it, such as a command."""
    text = next((key for key in _QUESTION_TEXTS if isinstance(question.get(key), str) and question[key]), None)
    odd: dict[str, Any] = {}
    for key, value in question.items():
        if key == text or value in _NOTHING or simplify_key(key) in _QUESTION:
            continue
        rest = _list_odd_options(value) if key in _QUESTION_OPTIONS and isinstance(value, list) else value
        if rest:
            odd[str(key)] = rest
    return odd


def _list_odd_options(options: list[Any]) -> list[dict[str, Any]]:
    rests = (
        {str(key): value for key, value in one.items() if simplify_key(key) not in _OPTION}
        for one in options
        if isinstance(one, Mapping)
    )
    return [rest for rest in rests if rest]

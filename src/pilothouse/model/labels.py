"""Labels of an approval's options, chosen by kind. The agent's own name for an option is never its label."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from .records import Option

__all__ = ["KIND_LABELS", "label_option", "make_visible", "quote_code"]

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

"""The rules behind the agents: total on any text, linear on hostile ones, and right where a reader can check them."""

from string import Formatter

import pytest

from agents.rules import entities, language, senders, triage
from agents.rules.templates import CLOSING, GREETING, NO_SUBJECT, STATUS, TEXTS, Occasion
from agents.rules.vocabulary import CUES, DANGER, HASTE
from schemas.jobs import Category, Urgency

MEGABYTE = 1_000_000
HOSTILE = ("a", "1 ", "a.a@", "+1 2", "http://", "order no. #", "12 de ", "\ufdfa\u0301", "\n>\0")


@pytest.mark.timeout(60)  # it takes about 1 s; a pattern that backtracks takes hours
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_megabyte_is_read_like_any_long_text(unit: str) -> None:
    text = unit * (MEGABYTE // len(unit))
    found = entities.find(text)
    assert all(len(named) <= entities.MOST for named in (found.addresses, found.orders, found.phones, found.urls))
    assert triage.triage(text, text, text).category in Category
    assert len(senders.address_of(text)) <= len(text)


def test_every_cue_is_written_as_the_text_will_be() -> None:
    cues = [cue for cues in CUES.values() for cue in cues] + [*HASTE, *DANGER]
    assert [cue for cue in cues if triage.plain(cue).strip() != cue.strip()] == []


def test_every_language_we_answer_in_has_every_answer_and_the_same_gaps() -> None:
    for occasion, texts in TEXTS.items():
        assert list(texts) == list(GREETING) == list(CLOSING) == list(NO_SUBJECT) == list(STATUS)
        gaps = [{name for _, name, _, _ in Formatter().parse(text) if name} for text in texts.values()]
        assert all(found == gaps[0] for found in gaps), occasion


@pytest.mark.parametrize("occasion", TEXTS)
def test_every_answer_is_seen_to_be_in_its_language(occasion: Occasion) -> None:
    for code, text in TEXTS[occasion].items():
        assert language.detect(f"{GREETING[code]},\n\n{text}\n\n{CLOSING[code]}") == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Could you tell me where it is?", "en"),
        ("Können Sie mir bitte helfen?", "de"),
        ("Je voudrais savoir où est mon colis", "fr"),
        ("¿Dónde está mi pedido?", "es"),
        ("Il mio ordine non è ancora arrivato", "it"),
        ("Onde está a minha encomenda? Obrigado", "pt"),
        ("Waar is mijn bestelling gebleven?", "nl"),
        ("Var är min beställning? Tack", "sv"),
        ("Gdzie jest moje zamówienie? Proszę o odpowiedź", "pl"),
        ("Где мой заказ?", "ru"),
        ("Де моє замовлення? Дякую за відповідь, її чекаю", "uk"),
        ("Πού είναι η παραγγελία μου;", "el"),
        ("注文はどこですか", "ja"),
        ("我的订单在哪里", "zh"),
        ("제 주문은 어디에 있나요", "ko"),
        ("أين طلبي؟", "ar"),
        ("איפה ההזמנה שלי?", "he"),
        ("मेरा ऑर्डर कहाँ है", "hi"),
        ("ของฉันอยู่ที่ไหน", "th"),
        ("", "und"),
        ("12345 :-) !!!", "und"),
        ("https://the.example.com/is/in/and", "und"),
    ],
)
def test_the_language_of_a_sentence(text: str, code: str) -> None:
    assert language.detect(text) == code


def test_entities_are_bounded_and_each_is_named_once() -> None:
    found = entities.find(" ".join(f"a{n}@example.com a{n}@example.com A-{10000 + n}" for n in range(100)))
    assert len(found.addresses) <= entities.MOST
    assert len(set(found.orders)) == len(found.orders) <= entities.MOST


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("order no. 123456, Bestellung 654321 and A-10423", "orders", ["123456", "654321", "A-10423"]),
        ("in the order of 2002 people, order by 10", "orders", []),
        ("EUR 1.200,50 and $5 or 30 euros", "amounts", ["EUR 1.200,50", "$5", "30 euros"]),
        ("on 2026-03-09, 9.3.2026, March 9, 2026, 9 de marzo de 2026, 2026年3月9日", "dates",
         ["2026-03-09", "9.3.2026", "March 9, 2026", "9 de marzo de 2026", "2026年3月9日"]),
        ("call +49 30 555 01 23 or (030) 555 0123, not 9.3.2026 or 2026-03-09", "phones",
         ["+49 30 555 01 23", "(030) 555 0123"]),
        ("see https://example.com/a?b. Or (www.example.org)", "urls", ["https://example.com/a?b", "www.example.org"]),
        ("write to A.B@Example.com, or a@b", "addresses", ["a.b@example.com"]),
    ],
)  # fmt: skip
def test_what_a_text_names(text: str, kind: str, expected: list[str]) -> None:
    assert getattr(entities.find(text), kind) == expected


def test_what_a_mail_quotes_is_not_what_it_says() -> None:
    quoting = triage.triage("a@example.com", "Re: hello", "Fine with me.\n> I want my money back, a refund!")
    assert quoting.category is Category.OTHER


def test_people_who_talk_about_an_out_of_office_reply_are_no_machine() -> None:
    assert triage.triage("a@example.com", "Re: X is out of the office", "Then ask Y.").category is Category.OTHER


def test_haste_and_danger_make_a_mail_urgent_but_advertising_never_is() -> None:
    assert triage.triage("", "Invoice", "Please send the invoice immediately.").urgency is Urgency.HIGH
    assert triage.triage("", "Lamp", "It caught fire.").urgency is Urgency.HIGH
    assert triage.triage("", "URGENT!!!", "Act now, click here, risk free, order now").urgency is Urgency.LOW

"""A fifth of the public mails of 2002-2003 through the four agents, in this process."""

from collections import Counter

import pytest

from examples.triage_corpus import CORPUS, triage


@pytest.mark.corpus
@pytest.mark.usefixtures("corpus")  # fetches the whole of it
async def test_real_mails_are_done_and_hardly_one_that_people_wanted_is_taken_for_spam() -> None:
    tally = await triage(CORPUS, every=5)
    assert tally.mails == 1210
    assert tally.ends["done"] >= 0.95 * tally.mails
    assert not [end for end in tally.ends if end.startswith("dead")]
    wanted: Counter[str] = Counter()
    for source, categories in tally.categories.items():
        wanted += categories if "ham" in source else Counter()
    assert wanted["spam"] + wanted["phishing"] < 0.02 * wanted.total()

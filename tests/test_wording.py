"""Wording: BM25 among the candidates, in any script, on one scale for every query."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from prism_memory import CONVERSATION, Weighting
from prism_memory.exceptions import ConfigurationError
from prism_memory.languages import LANGUAGES
from prism_memory.wording import K1, B, Wording
from prism_memory.words import words
from tests.searching import vectors_read

TEXTS = [
    "The dog sleeps in the garden.",
    "Dogs like bones and walks.",
    "We planted roses in the garden last year, and they grew.",
    "My bicycle has a flat tyre.",
    "",
]
ANY = st.text(max_size=40)


def scores(query: str, texts: list[str] = TEXTS, language: str | None = "english") -> list[float]:
    return Wording(query, texts, language=language).scores


class TestFormula:
    def test_is_that_of_bm25(self) -> None:
        """Worked by hand: two words of the query, of which one text has both, and twice one."""
        texts = ["red red blue", "blue green", "green"]
        found = scores("red blue", texts, None)
        red, blue = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
        norm = [K1 * (1 - B + B * length / 2) for length in (3, 2, 1)]
        most = (red + blue) * (K1 + 1)
        first = red * 2 * (K1 + 1) / (2 + norm[0]) + blue * (K1 + 1) / (1 + norm[0])
        second = blue * (K1 + 1) / (1 + norm[1])
        assert found == pytest.approx([first / most, second / most, 0.0], rel=1e-12)

    def test_the_words_of_the_query_that_few_use_count_most(self) -> None:
        found = scores("roses in a garden")
        assert found.index(max(found)) == 2
        assert found[0] > 0 == found[3]

    def test_stems_and_case_are_alike_and_common_words_are_nothing(self) -> None:
        dogs = scores("DOG")
        assert dogs[0] > 0
        assert dogs[1] > 0
        assert scores("what is the and in my") == [0.0] * len(TEXTS)
        assert scores("dogs", language=None)[0] == 0.0

    def test_repeats_in_the_query_change_nothing(self) -> None:
        assert scores("garden garden roses") == scores("roses garden")

    def test_the_scale_is_that_of_the_query_and_not_of_what_was_found(self) -> None:
        """Of a query that is answered in part, the best is not 1: min_score means the same."""
        whole, part = scores("flat tyre"), scores("flat tyre punctured yesterday morning")
        assert 0.4 < max(whole) < 1
        assert max(part) < 0.5 * max(whole)
        assert max(scores("nobody spoke of these")) == 0.0

    def test_another_text_is_scored_by_the_candidates_frequencies(self) -> None:
        wording = Wording("roses garden", TEXTS, language="english")
        assert [wording.score(text) for text in TEXTS] == wording.scores
        assert wording.score("roses in a garden") > max(wording.scores)

    def test_of_nothing_there_is_nothing(self) -> None:
        assert scores("dog", []) == []
        assert scores("", ["dog"]) == scores("!?", ["dog"]) == [0.0]
        assert Wording("dog", [], language="english").score("a dog") == pytest.approx(1 / 2.2)


class TestScripts:
    @pytest.mark.parametrize(
        ("query", "text", "other"),
        [
            ("我的猫叫什么名字", "猫的名字是咪咪", "今天下雨了"),
            ("猫", "我有一只猫", "我有一只狗"),
            ("犬の名前", "うちの犬は名前がポチです", "明日は雨です"),
            ("แมวของฉัน", "เธอมีแมวสองตัว", "วันนี้ฝนตก"),
            ("강아지 이름", "우리 강아지는 초코입니다", "오늘 비가 와요"),
            ("где живёт Анна", "Анна живёт в Граце", "сегодня дождь"),
            ("क्षत्रिय की कहानी", "एक कहानी सुनो", "आज बारिश है"),
            ("ΣΊΣΥΦΟΣ", "ο σίσυφος", "βροχή"),
            ("ﬁne straße", "FINE STRASSE", "rain"),
            ("caf\u00e9", "cafe\u0301", "tea"),
        ],
    )
    @pytest.mark.parametrize("language", ["english", None])
    def test_are_searched_whatever_the_language(
        self, query: str, text: str, other: str, language: str | None
    ) -> None:
        found, nothing = scores(query, [text, other], language)
        assert found > 2 * nothing >= 0

    def test_marks_do_not_cut_words(self) -> None:
        assert words("क्षत्रिय", None) == ["क्षत्रिय"]
        assert words("naïve", None) == ["naïve"]

    def test_words_without_blanks_are_pairs_and_han_also_single(self) -> None:
        assert words("iPhoneを買う", None) == ["iphone", "を買", "買う", "買"]
        assert words("東京都 猫", None) == ["東京", "京都", "東", "京", "都", "猫"]
        assert words("ไทย", None) == ["ไท", "ทย"]

    def test_what_is_no_word_is_none(self) -> None:
        assert words("❤️ 👩‍💻 🎉 — … \u200b \U000e0041 _", "english") == []
        assert words("a_b", None) == words("a-b", None) == ["a", "b"]

    @given(ANY, st.lists(ANY, max_size=6), st.sampled_from([None, *sorted(LANGUAGES)]))
    def test_any_text_scores_between_zero_and_one(self, query, texts, language) -> None:
        wording = Wording(query, texts, language=language)
        for score in [*wording.scores, wording.score(query)]:
            assert 0.0 <= score <= 1.0  # also false of NaN

    @given(ANY)
    def test_words_are_the_same_in_ascii_and_beside_other_scripts(self, text: str) -> None:
        plain = text.encode("ascii", "ignore").decode()
        assert words(plain + " ж", None) == [*words(plain, None), "ж"]


class TestLanguage:
    def test_is_one_that_the_library_knows(self) -> None:
        assert set(snowballstemmer.algorithms()) >= LANGUAGES
        assert words("Häuser", "german") == words("haus", "german")
        assert words("chevaux", "french") == words("cheval", "french")

    def test_that_an_older_library_lacks_is_named(self, monkeypatch) -> None:
        def unknown(language: str) -> None:
            raise KeyError(language)

        monkeypatch.setattr(snowballstemmer, "stemmer", unknown)
        monkeypatch.setattr("prism_memory.words._stemmers", threading.local())
        with pytest.raises(ConfigurationError, match="'sesotho'"):
            words("unlikelyword", "sesotho")

    def test_threads_do_not_share_a_stemmer(self) -> None:
        """A stemmer keeps the word that it works on in itself."""
        from prism_memory.words import _stem, _stemmer

        given = [f"running{letter}s" for letter in "abcdefghijklmnopqrstuvwxyz" * 20]
        alone = [words(word, "english") for word in given]
        _stem.cache_clear()
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(_stemmer, "english").result()
        assert elsewhere.__self__ is not _stemmer("english").__self__
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda word: words(word, "english"), given)) == alone

    def test_a_run_of_letters_that_is_no_word_takes_no_time(self) -> None:
        assert words("x" * 200_000, "english") == ["x" * 200_000]


@pytest.mark.django_db
class TestRecalling:
    @pytest.fixture
    def garden(self, memory):
        memory.remember([text for text in TEXTS if text])
        return memory

    def test_words_lift_what_shares_them(self, garden) -> None:
        found = garden.recall("Are there roses?", weighting=Weighting(0, 0, 1)).ranked()
        assert found[0].content == TEXTS[2]
        assert found[0].score == found[0].wording > 0.3
        assert {memory.wording for memory in found[1:]} == {0.0}

    def test_every_part_is_shown_and_the_score_is_their_mean(self, garden) -> None:
        mix = Weighting(2, 1, 3)
        for each in garden.recall("dogs in the garden", weighting=mix):
            mean = (2 * each.similarity + each.recency + 3 * each.wording) / 6
            assert each.score == pytest.approx(mean)
            assert all(-1 <= part <= 1 for part in (each.similarity, each.wording, each.score))

    def test_nothing_is_tokenised_when_the_axis_is_off(self, garden, monkeypatch) -> None:
        monkeypatch.setattr("prism_memory.scoring.Wording", None)
        assert {memory.wording for memory in garden.recall("roses")} == {0.0}
        with pytest.raises(TypeError):
            garden.recall("roses", weighting=Weighting(1, 0, 1))

    def test_the_speaker_is_among_the_words(self, memory) -> None:
        said = [("Ana", "I moved."), ("Ben", "I moved too.")]
        memory.remember([{"role": "user", "name": n, "content": c} for n, c in said])
        found = memory.recall("Where did Ben move?", weighting=Weighting(0, 0, 1)).ranked()
        assert found[0].name == "Ben"

    def test_all_candidates_are_weighed_and_no_more_are_read(self, memory) -> None:
        memory.remember([f"alpha beta word{n}" for n in range(120)])
        memory.remember("zebra")
        with vectors_read() as read:
            found = memory.recall("alpha beta zebra", limit=1, weighting=Weighting(0, 0, 1))
        assert found[0].content == "zebra"
        assert len(read) == found.vectors_scored == 121

    def test_a_min_score_compares_the_score(self, garden) -> None:
        mix = Weighting(0, 0, 1)
        assert len(garden.recall("roses", weighting=mix, min_score=0.3)) == 1
        assert len(garden.recall("roses unheard of", weighting=mix, min_score=0.3)) == 0

    def test_weights_and_language_are_settings(self, garden, settings) -> None:
        recall = {"relevance": 0, "wording": 1}
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": recall}
        assert garden.recall("bone", limit=1)[0].content == TEXTS[1]
        recall = {**recall, "language": None}
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": recall}
        assert {memory.score for memory in garden.recall("bone")} == {0.0}


def test_the_preset_is_what_the_docs_say() -> None:
    assert Weighting(2, 0, 4, 3) == CONVERSATION

"""The ranking rule: tokens, BM25, the fused relevance and the order of hits."""

from __future__ import annotations

import doctest
import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from streams.models.embedding.calibration import COSINE, Scale, Scales, scale_of
from streams.models.embedding.embedders import Model
from streams.recall import ranking
from streams.recall.ranking import (
    Scores,
    bm25,
    carry,
    fuse,
    is_question,
    lifted,
    probe,
    questions,
    sentences,
    top,
)
from tables.search.terms import MOST, Terms, hash_of
from tables.search.tokens import tokens, weight
from tests.support.calls import Calls
from tests.support.steps import HOSTILE_PIECES, Steps

#: Of a query over HTTP: characters.
LONGEST = 32_768
SIZES = st.integers(0, 40)
TEXTS = st.lists(st.text("abc dé's 我喜欢猫？?!1", max_size=30), max_size=12)


def floats(values: list[float]) -> Scores:
    return np.array(values, np.float32)


def between(low: float, high: float, shape: tuple[int, ...]) -> st.SearchStrategy[Scores]:
    return npst.arrays(np.float32, shape, elements=st.floats(low, high, width=32))


@st.composite
def a_users_scores(draw: st.DrawFn) -> tuple[Scores, Scores]:
    n = draw(SIZES)
    return draw(between(-1, 1, (n,))), draw(between(0, 1, (n,)))


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(ranking).failed == 0


def test_a_single_term_scores_by_its_count_and_the_length_of_the_text() -> None:
    # Lengths 2 and 3, mean 2.5: the term is saturated at 0.5 + 0.5 * 3/2.5 = 1.1; share 1 / (1 + 1.1).
    terms = Terms.of(["cat dog", "cat cat bird"])
    np.testing.assert_allclose(bm25(terms, "bird"), [0, 1 / 2.1], rtol=1e-6)


def test_a_repeated_term_saturates() -> None:
    terms = Terms.of(["cat dog", "cat cat bird"])
    np.testing.assert_allclose(bm25(terms, "cat"), [1 / 1.9, 2 / 3.1], rtol=1e-6)


def test_a_term_that_nobody_wrote_counts_against_every_memory() -> None:
    # 2 + 10 imaginary memories: idf is ln(1 + 11.5/1.5) for "dog", ln(1 + 12.5/0.5) = ln 26 for "fish".
    terms = Terms.of(["cat dog", "cat cat bird"])
    dog = math.log(1 + 11.5 / 1.5)
    np.testing.assert_allclose(bm25(terms, "dog fish"), [dog / (dog + math.log(26)) / 1.9, 0], rtol=1e-6)


def test_a_function_word_counts_a_fifth_of_a_content_word() -> None:
    # 1 + 10 imaginary memories: idf is ln(1 + 10.5/1.5) = ln 8 for a held term, ln(1 + 11.5/0.5) = ln 24
    # for "fish"; a text of mean length is saturated at 1, which leaves a half.
    terms = Terms.of(["what tea"])
    held, unheard = math.log(8), math.log(24)
    np.testing.assert_allclose(bm25(terms, "tea fish"), [held / (held + unheard) / 2], rtol=1e-6)
    np.testing.assert_allclose(bm25(terms, "what fish"), [held / (held + 5 * unheard) / 2], rtol=1e-6)


def test_a_rare_word_outweighs_a_common_one() -> None:
    terms = Terms.of(["tea spoon", "tea cup", "tea pot", "tea oolong"])
    assert bm25(terms, "tea oolong").argmax() == 3


def test_chinese_finds_the_answer_without_a_segmenter() -> None:
    terms = Terms.of(["我住在世纪花园。", "我的同事叫孙逸飞。", "今天天气不错。"])
    assert bm25(terms, "世纪花园在哪里？").argmax() == 0


@pytest.mark.parametrize("query", ["", "?", "unheard"])
def test_a_query_that_hits_nothing_scores_zero_everywhere(query: str) -> None:
    assert bm25(Terms.of(["cat", "dog"]), query).tolist() == [0, 0]


def test_no_texts_have_no_scores() -> None:
    scores = bm25(Terms.of([]), "cat")
    assert scores.shape == (0,)
    assert scores.dtype == np.float32


@given(TEXTS, st.integers(0, 12), st.text("abc dé's 我喜欢猫", max_size=15))
def test_terms_in_pieces_score_as_those_read_at_once(texts: list[str], cut: int, query: str) -> None:
    pieces = Terms.of(texts[:cut]).with_more(Terms.of(texts[cut:]))
    whole = Terms.of(texts)
    assert len(pieces) == len(whole) == len(texts)
    assert bm25(pieces, query).tolist() == bm25(whole, query).tolist()


def by_postings(texts: list[str], query: str) -> Scores:
    """BM25 as textbooks have it: a list of holders for each token, and the query's tokens one after the other."""
    postings: dict[str, dict[int, int]] = {}
    for row, text in enumerate(texts):
        for token, count in Counter(tokens(text)).items():
            postings.setdefault(token, {})[row] = count
    lengths = floats([sum(weight(token) * count for token, count in Counter(tokens(text)).items()) for text in texts])
    scores, best = np.zeros(len(texts), np.float32), 0.0
    if not texts:
        return scores
    stretch = ranking.B / (float(lengths.mean()) or 1.0)
    for token, count in Counter(tokens(query)).items():
        held = postings.get(token, {})
        memories = len(texts) + ranking.PRIOR_MEMORIES
        value = count * weight(token) * math.log1p((memories - len(held) + 0.5) / (len(held) + 0.5))
        best += value * (ranking.K1 + 1)
        rows, counts = list(held), floats(list(held.values()))
        saturation = ranking.K1 * (1 - ranking.B + stretch * lengths[rows])
        scores[rows] += value * (ranking.K1 + 1) * counts / (counts + saturation)
    return scores / np.float32(best) if best else scores


WORDS = ["the", "cat", "cats", "hiking", "Ann's", "北京", "我的", "生日", "café", "what", "7"]
MIXED = st.one_of(
    st.text("abc dé's 我喜欢猫？?!1", max_size=30),
    st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
)


@given(st.lists(MIXED, max_size=30), MIXED)
def test_one_pass_over_numbers_scores_as_postings_do(texts: list[str], query: str) -> None:
    """In both languages, with doubled and empty texts among them, to the last bit."""
    assert bm25(Terms.of(texts), query).tolist() == by_postings(texts, query).tolist()


@given(TEXTS, st.text("abc dé's 我喜欢猫", max_size=15))
def test_a_lexical_score_is_a_share(texts: list[str], query: str) -> None:
    scores = bm25(Terms.of(texts), query)
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("beside", [MOST + 1, -MOST - 1], ids=["above", "below"])
def test_a_word_that_is_beside_the_one_that_is_asked_for_is_no_hit(beside: int) -> None:
    """Hashes are looked for by their upper bits first, which these two share."""
    (token,) = tokens("skiing")
    asked = hash_of(token)
    terms = Terms(np.array([asked + beside + 1], np.uint64), np.array([1]), floats([1]))
    assert bm25(terms, "skiing").tolist() == [0]


def test_one_question_is_one_part() -> None:
    assert questions("Where do I live?") == ["Where do I live?"]


def test_two_questions_in_one_breath_are_ranked_apart_and_together() -> None:
    query = "我叔叔多大了？另外，我住的小区叫什么？"
    assert questions(query) == [query, "我叔叔多大了？", "另外，我住的小区叫什么？"]


def test_chat_before_a_question_stays_only_in_the_whole() -> None:
    assert questions("Rainy again. What was that hotel?")[1:] == ["What was that hotel?"]


def test_a_doubled_mark_or_a_closing_quote_ends_one_question() -> None:
    assert questions("“我住哪里？？”\nAnd why?!") == [
        "“我住哪里？？”\nAnd why?!",
        "“我住哪里？？”",
        "And why?!",
    ]


def test_a_statement_is_searched_as_it_is() -> None:
    assert questions("my sister; her birthday") == ["my sister; her birthday"]


@given(st.text("a?？。 \n", max_size=40))
def test_parts_are_few_and_distinct_and_begin_with_the_whole(query: str) -> None:
    parts = questions(query)
    assert parts[0] == query
    assert len(parts) <= ranking.MAX_PARTS
    assert len(set(parts[1:])) == len(parts[1:])


#: What the loops say in one pattern each, which take time that grows with the square of the text's length, or worse.
ENDS = re.compile(r"(?<=[。！？!?；;\n])(?=\s*\w)|(?<=\.)\s+")
ASKS = re.compile(r"\w.*[?？]\W*$", re.DOTALL)


@given(st.text('ab_1. \n\u3000?？!。;；"我é²)(', max_size=16))
def test_sentences_and_questions_are_what_the_patterns_say(text: str) -> None:
    assert list(filter(None, sentences(text))) == list(filter(None, map(str.strip, ENDS.split(text))))
    assert is_question(text) == (ASKS.search(text) is not None)


@pytest.mark.parametrize("piece", HOSTILE_PIECES)
def test_the_parts_of_a_query_are_found_in_steps_that_grow_with_its_length(piece: str) -> None:
    """32 KB of letters, question marks and a quote held a worker for minutes."""
    steps, text = Steps(most=20 * LONGEST), (piece * LONGEST)[:LONGEST]
    calls = Calls()
    with steps.counted(ranking):
        assert questions(text)[0] == text
    with calls.watched(), calls.counted():
        questions(text)
    assert calls.total <= 12 * LONGEST


@pytest.mark.parametrize(
    ("query", "embedded"),
    [
        ("What is Ann's job?", "What is job?"),
        ("Where did Annabel meet Ann?", "Where did Annabel meet ?"),
        ("小明的生日是哪天？", "的生日是哪天？"),
        ("Ann?", "Ann?"),
    ],
)
def test_speakers_are_left_out_of_what_is_embedded(query: str, embedded: str) -> None:
    assert probe(query, {"Ann", "小明", ""}) == embedded


def test_the_longer_of_two_overlapping_names_goes_first() -> None:
    assert probe("Ann Lee moved", ["Ann", "Ann Lee"]) == "moved"


def test_without_known_speakers_the_query_is_untouched() -> None:
    assert probe("  What  is it?", ()) == "  What  is it?"


@given(a_users_scores())
def test_relevance_lies_within_zero_and_one(scores: tuple[Scores, Scores]) -> None:
    relevance = fuse(*scores)
    assert relevance.dtype == np.float32
    assert relevance.shape == scores[0].shape
    assert ((relevance >= 0) & (relevance <= 1)).all()


@given(a_users_scores())
def test_better_in_both_is_never_ranked_lower(scores: tuple[Scores, Scores]) -> None:
    dense, lexical = scores
    relevance = fuse(dense, lexical)
    better = (dense[:, None] >= dense) & (lexical[:, None] >= lexical)
    assert (relevance[:, None] >= relevance)[better].all()


@given(a_users_scores())
def test_the_order_is_that_of_z_scores_with_the_believed_spread(scores: tuple[Scores, Scores]) -> None:
    def fused_z(values: Scores, scale: Scale) -> NDArray[np.float64]:
        exact = values.astype(np.float64)
        n = len(exact)
        spread = math.sqrt((n * exact.var() + 20 * scale.spread**2) / (n + 20))
        z: NDArray[np.float64] = (exact - exact.mean()) / max(spread, scale.least)
        return z

    if len(scores[0]):
        z = fused_z(scores[0], COSINE) + fused_z(scores[1], ranking.COVERAGE)
        relevance = fuse(*scores)[np.argsort(z)]
        assert (np.diff(relevance) >= -1e-6).all()


def test_the_only_memory_is_relevant_when_it_answers_and_not_when_it_does_not() -> None:
    assert fuse(floats([0.5]), floats([0.3]))[0] > 0.8
    assert fuse(floats([0.08]), floats([0]))[0] < 0.06


def test_of_two_memories_the_answer_is_high_and_the_other_low() -> None:
    answer, other = fuse(floats([0.5, 0.1]), floats([0.3, 0]))
    assert answer > 0.7
    assert other < 0.1


@pytest.mark.parametrize("n", [1, 2, 300])
def test_equally_good_memories_are_all_relevant_and_equally_bad_ones_all_not(n: int) -> None:
    assert (fuse(np.full(n, 0.5, np.float32), np.full(n, 0.3, np.float32)) > 0.8).all()
    assert (fuse(np.full(n, 0.08, np.float32), np.zeros(n, np.float32)) < 0.06).all()


def test_a_model_of_which_nothing_is_known_has_half_of_the_weight() -> None:
    """As has `use`, whose ranking is exactly the one without a model."""
    assert [Model(name, 384).dense_share for name in ("use-multilingual-v3", "mine")] == [0.5, 0.5]
    assert Model("multilingual-e5-small-q4", 384).dense_share == 0.7
    dense, lexical = floats([0.5, 0.1, 0.3]), floats([0.01, 0.3, 0.1])
    assert fuse(dense, lexical, COSINE, 0.5).tolist() == fuse(dense, lexical).tolist()


def test_with_more_weight_the_cosine_decides_more() -> None:
    dense, lexical = floats([0.4, 0.08]), floats([0.01, 0.14])
    by_words, by_vectors = fuse(dense, lexical, COSINE, 0.4), fuse(dense, lexical, COSINE, 0.7)
    assert by_words.argmax() == 1
    assert by_vectors.argmax() == 0
    assert fuse(dense, lexical, COSINE, 1.0)[1] == fuse(dense, floats([0, 0]), COSINE, 1.0)[1]


def test_a_paraphrase_is_found_without_a_common_word() -> None:
    dense = np.full(50, 0.08, np.float32)
    dense[7] = 0.65
    relevance = fuse(dense, np.zeros(50, np.float32))
    assert relevance.argmax() == 7
    assert relevance[7] > 0.5


def test_an_exact_name_is_found_without_a_similar_meaning() -> None:
    lexical = np.zeros(50, np.float32)
    lexical[7] = 0.5
    assert fuse(np.full(50, 0.08, np.float32), lexical)[7] > 0.75


def test_what_scores_as_the_unrelated_do_is_a_twentieth_relevant() -> None:
    """Three deviations of evidence are missing: 0.5 − 0.5 × 2/√5."""
    assert fuse(floats([0.08]), floats([0.01])).tolist() == pytest.approx([0.0528], abs=1e-4)


def test_strong_hits_keep_their_order_in_float32() -> None:
    relevance = fuse(np.full(3, 1.0, np.float32), floats([0.99, 1.0, 0.98]))
    assert np.argsort(relevance).tolist() == [2, 0, 1]
    assert relevance.max() < 1


def test_parts_of_a_query_are_fused_each_for_itself() -> None:
    dense, lexical = floats([0.1, 0.6, 0.0]), floats([0, 0.3, 0.1])
    both = fuse(np.stack([dense, lexical]), np.stack([lexical, dense]))
    assert both[0].tolist() == fuse(dense, lexical).tolist()
    assert both[1].tolist() == fuse(lexical, dense).tolist()


def test_another_embedding_model_brings_its_own_scale() -> None:
    e5 = Scale(centre=0.75, spread=0.03, least=0.015)
    unrelated, answer = fuse(floats([0.75, 0.9]), floats([0, 0.2]), e5)
    assert unrelated < 0.1
    assert answer > 0.6


def test_a_models_scale_is_that_of_what_does_not_belong_together() -> None:
    """The middle cosine, and how far a question's cosines vary."""
    scale = scale_of(floats([0.5, 0.7, 0.6]) + np.zeros((4, 1), np.float32))
    assert (scale.centre, scale.spread, scale.least) == pytest.approx((0.6, 0.0816, 0.0408), abs=1e-3)


def test_questions_that_lie_apart_make_a_models_scale_no_wider() -> None:
    """The spread is that over the memories of one question."""
    scale = scale_of(np.array([[0.0, 0.2], [0.8, 1.0]], np.float32))
    assert scale.spread == pytest.approx(0.1, abs=1e-6)


def test_a_model_that_finds_all_alike_has_a_scale() -> None:
    """Which divides by no zero."""
    scale = scale_of(np.full((3, 5), 0.9, np.float32))
    assert np.isfinite(fuse(floats([0.9, 0.9]), floats([0, 0]), scale)).all()


def test_the_scale_is_that_of_the_questions_writing() -> None:
    latin, cjk = Scale(0.1, 0.1, 0.05), Scale(0.6, 0.06, 0.03)
    scales = Scales(latin=latin, cjk=cjk)
    assert [
        scales.of(query) for query in ("where do I live?", "我住在哪里？", "Ann 喜欢什么？", "где я живу?", "")
    ] == [*(latin, cjk, cjk, latin, latin)]


def test_no_memories_have_no_relevance() -> None:
    assert fuse(floats([]), floats([])).shape == (0,)
    assert fuse(np.zeros((2, 0), np.float32), np.zeros((2, 0), np.float32)).shape == (2, 0)


def test_scores_of_different_memories_are_refused() -> None:
    with pytest.raises(ValueError, match="not the same memories"):
        fuse(floats([0.1]), floats([0.1, 0.2]))


def test_a_memory_takes_a_fifth_of_what_the_one_before_it_leaves_open() -> None:
    carried = carry(floats([0.9, 0.5, 0.5]), np.array([-1, 0, -1]))
    np.testing.assert_allclose(carried, [0.9, 0.5 + 0.2 * 0.9 * 0.5, 0.5], rtol=1e-6)


@given(
    SIZES.flatmap(
        lambda n: st.tuples(
            between(0, 1, (n,)),
            npst.arrays(np.int64, n, elements=st.integers(-1, max(n - 1, 0) if n else -1)),
        )
    )
)
def test_carrying_never_lowers_and_never_exceeds_one(
    case: tuple[Scores, NDArray[np.int64]],
) -> None:
    relevance, previous = case
    carried = carry(relevance, previous)
    assert carried.dtype == np.float32
    assert ((carried >= relevance) & (carried <= 1)).all()


@given(between(0, 1, (20,)), st.floats(0.0, 3.0))
def test_a_lift_never_lowers_never_exceeds_one_and_keeps_the_order(relevance: Scores, lift: float) -> None:
    raised = lifted(relevance, lift)
    assert raised.dtype == np.float32
    assert ((raised >= relevance - 1e-7) & (raised <= 1)).all()
    assert (np.diff(raised[np.argsort(relevance, kind="stable")]) >= 0).all()


def test_a_lift_moves_the_zero_point_of_the_curve() -> None:
    def curve(u: NDArray[np.float64]) -> Scores:
        return (0.5 + 0.5 * u / np.sqrt(1 + u * u)).astype(np.float32)

    u = np.linspace(-4, 4, 33)
    np.testing.assert_allclose(lifted(curve(u), 0.5), curve(u + 0.5), atol=2e-6)


def test_without_a_lift_relevances_stay_as_they_are() -> None:
    relevance = floats([0.0, 0.4, 1.0])
    assert lifted(relevance, 0.0) is relevance


def test_a_model_lifts_questions_in_the_script_in_which_its_answers_have_fewer_deviations() -> None:
    e5 = Model("multilingual-e5-small-q4", 384)
    assert [e5.lift_of(question) for question in ("Where?", "¿Dónde?")] == [0.5, 0.5]
    assert [e5.lift_of(question) for question in ("在哪里？", "Ann 在哪里？")] == [0, 0]
    assert Model("use-multilingual-v3", 512).lift_of("Where?") == 0


def test_the_best_come_first() -> None:
    assert top(floats([0.1, 0.9, 0.5]), None, 2).tolist() == [1, 2]


def test_of_equals_the_newest_comes_first() -> None:
    assert top(floats([0.5, 0.9, 0.5, 0.5]), None, 4).tolist() == [1, 3, 2, 0]


def test_of_many_equals_the_newest_comes_first() -> None:
    """More than a sort keeps in order by chance."""
    halves = np.tile(floats([0.5, 0.9]), 500)
    assert top(halves, None, 1_000).tolist() == [*range(999, 0, -2), *range(998, -1, -2)]


def test_a_filter_is_applied_before_the_cut() -> None:
    assert top(floats([0.9, 0.8, 0.1, 0.2]), np.array([False, False, True, True]), 2).tolist() == [3, 2]


@pytest.mark.parametrize("k", [0, -1])
def test_asking_for_none_gives_none(k: int) -> None:
    assert top(floats([0.5]), None, k).tolist() == []


@given(SIZES.flatmap(lambda n: st.tuples(between(0, 1, (n,)), npst.arrays(np.bool_, n))), st.integers(0, 50))
def test_hits_are_allowed_distinct_sorted_and_as_many_as_there_are(
    case: tuple[Scores, NDArray[np.bool_]], k: int
) -> None:
    relevance, allowed = case
    hits = top(relevance, allowed, k)
    assert hits.dtype == np.int64
    assert len(hits) == len(set(hits.tolist())) == min(k, int(allowed.sum()))
    assert allowed[hits].all()
    assert (np.diff(relevance[hits]) <= 0).all()
    left_out = allowed.copy()
    left_out[hits] = False
    assert not len(hits) or (relevance[left_out] <= relevance[hits].min()).all()

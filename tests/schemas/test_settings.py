"""Settings: file, environment, and mistakes that a person understands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from schemas.errors import SettingsError
from schemas.settings import CONFIG_VARIABLE, DEFAULT_MODEL, OPENAI_EMBEDDINGS, OPENAI_URL, Settings


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of the machine's own, and not the other tests' embedding."""
    monkeypatch.delenv("SILTSTONE_EMBEDDING__BACKEND")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_defaults_are_the_designs() -> None:
    settings = Settings.load()
    assert (settings.memory.promote_threshold, settings.memory.capacity) == (10, 50)
    assert (settings.lifecycle.active, settings.lifecycle.cold, settings.long_term.near_copy) == (70, 30, 0.95)


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("config.yaml").write_text("memory: {promote_threshold: 20, capacity: 5}\n", encoding="utf-8")
    monkeypatch.setenv("SILTSTONE_MEMORY__PROMOTE_THRESHOLD", "30")
    assert (Settings.load().memory.promote_threshold, Settings.load().memory.capacity) == (30, 5)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("memory: {promote_threshold: many}", "memory.promote_threshold"),
        ("memory: {promote: 3}", "memory.promote"),
        ("lifecycle: {cold: 80}", "lifecycle"),
        ("http: {host: 0.0.0.0}", "http.host"),
        ("embedding: {backend: magic}", "embedding.backend"),
    ],
)
def test_a_mistake_is_one_line_with_its_path(text: str, path: str) -> None:
    Path("config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    (problem,) = caught.value.problems
    assert problem.startswith(f"{path}:")
    assert "\n" not in problem


def test_a_password_shows_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_KAFKA__SASL_PASSWORD", "hunter2")
    monkeypatch.setenv("SILTSTONE_KAFKA__SASL_USERNAME", "ann")
    monkeypatch.setenv("SILTSTONE_KAFKA__SECURITY_PROTOCOL", "SASL_SSL")
    assert "hunter2" not in repr(Settings.load())


def write(text: str, name: str = "config.yaml") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def problems() -> list[str]:
    """What is wrong with the settings as they stand; each problem is one line."""
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert not any("\n" in problem for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kafka.bootstrap_servers", "127.0.0.1:9092"),
        ("kafka.topic_prefix", "siltstone."),
        ("memory.capacity", 50),
        ("memory.ttl_seconds", 86_400),
        ("memory.context_turns", 10),
        ("memory.exchange_gap_seconds", 120),
        ("memory.exchange_messages", 16),
        ("memory.session_idle_seconds", 1_800),
        ("memory.promote_threshold", 10),
        ("memory.notes", 100),
        ("memory.scoring.policy", "weighted"),
        ("memory.scoring.content_value", 2),
        ("memory.scoring.concurrency", 8),
        ("memory.scoring.timeout_seconds", 20),
        ("embedding.backend", "auto"),
        ("embedding.model", "paraphrase-multilingual-MiniLM-L12-v2"),
        ("long_term.access_increment", 2),
        ("long_term.near_copy", 0.95),
        ("long_term.top_k", 10),
        ("long_term.context_memories", 3),
        ("long_term.supersede.enabled", True),
        ("long_term.supersede.candidates", 3),
        ("long_term.group_cosine", None),
        ("long_term.supersede.min_cosine", None),
        ("long_term.summaries_by_model", True),
        ("recall.profile_by_model", False),
        ("lifecycle.clock", "wall"),
        ("lifecycle.fresh_days", 7),
        ("lifecycle.half_life_days", 30),
        ("lifecycle.active", 70),
        ("lifecycle.cold", 30),
        ("lifecycle.recompute_seconds", 60),
        ("lifecycle.cleanup.enabled", False),
        ("lifecycle.cleanup.paused", False),
        ("lifecycle.cleanup.after_days", 30),
        ("lifecycle.cleanup.recent_access_days", 7),
        ("lifecycle.cleanup.link_weight", 0.7),
        ("lifecycle.cleanup.retention_days", 90),
        ("agents.defaults.model", ""),
        ("agents.summary.enabled", True),
        ("agents.summary.interval", 10),
        ("agents.summary.model", ""),
        ("agents.summary.max_tokens", 4_000),
        ("agents.summary.language", "auto"),
        ("agents.summary.promote", False),
        ("agents.summary.timezone", "UTC"),
        ("agents.summary.timeout_seconds", 60),
        ("http.host", "127.0.0.1"),
    ],
)
def test_each_default_is_the_designs(key: str, value: object) -> None:
    assert functools.reduce(getattr, key.split("."), Settings.load()) == value


@pytest.mark.parametrize(
    "phrase", ["请记住", "帮我记住", "记一下", "记住", "remember that", "please remember", "don't forget"]
)
def test_the_remember_phrases_are_the_designs(phrase: str) -> None:
    assert phrase in Settings.load().memory.force_phrases


@pytest.mark.parametrize("emotion", ["悲伤", "愤怒", "惊讶", "sad", "angry", "surprised"])
def test_the_strong_emotions_are_the_designs(emotion: str) -> None:
    assert emotion in Settings.load().memory.scoring.strong_emotions


@pytest.mark.parametrize(
    "keyword",
    [
        *("叫", "喜欢", "记住", "约好", "生日"),
        *("my name", "like", "love", "birthday", "allergic", "promise", "appointment", "live in"),
    ],
)
def test_the_content_keywords_are_the_designs(keyword: str) -> None:
    assert keyword in Settings.load().memory.scoring.content_keywords


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "memory: {}\n"])
def test_an_empty_file_changes_nothing(text: str) -> None:
    before = Settings.load()
    write(text)
    assert Settings.load() == before


def test_a_commands_options_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_DATA_DIR", "from-the-environment")
    assert Settings.load().data_dir == Path("from-the-environment")
    assert Settings.load(data_dir="from-the-option").data_dir == Path("from-the-option")


def test_lists_come_from_the_environment_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_MEMORY__FORCE_PHRASES", '["merke dir"]')
    assert Settings.load().memory.force_phrases == ("merke dir",)


def test_the_file_may_lie_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(write("memory: {capacity: 7}", "other.yaml")))
    assert Settings.load().memory.capacity == 7


def test_what_may_be_replaced_is_less_similar_than_a_near_copy() -> None:
    """Else nothing would ever be asked; where nothing is to be asked, all the same."""
    write("long_term: {near_copy: 0.5, supersede: {min_cosine: 0.5}}\n")
    assert problems() == ["long_term: value error, supersede.min_cosine (0.5) must be below near_copy (0.5)"]
    write("long_term: {near_copy: 0.5, supersede: {min_cosine: 0.5, enabled: false}}\n")
    assert Settings.load().long_term.near_copy == 0.5


def test_a_least_cosine_is_a_number_or_the_models_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's own is not known when settings are read, so it is not compared with `near_copy`."""
    write("long_term: {near_copy: 0.3, group_cosine: 0.6, supersede: {min_cosine: null}}\n")
    long_term = Settings.load().long_term
    assert (long_term.group_cosine, long_term.supersede.min_cosine) == (0.6, None)
    monkeypatch.setenv("SILTSTONE_LONG_TERM__GROUP_COSINE", "null")
    monkeypatch.setenv("SILTSTONE_LONG_TERM__SUPERSEDE__MIN_COSINE", "0.2")
    long_term = Settings.load().long_term
    assert (long_term.group_cosine, long_term.supersede.min_cosine) == (None, 0.2)
    monkeypatch.setenv("SILTSTONE_LONG_TERM__GROUP_COSINE", "1.1")
    assert len(problems()) == 1


def test_a_named_file_that_is_not_there_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in the current folder may be missing; the one that was asked for may not."""
    monkeypatch.setenv(CONFIG_VARIABLE, "nowhere.yaml")
    assert problems() == ["SILTSTONE_CONFIG: there is no file nowhere.yaml"]


def test_all_mistakes_are_named_at_once() -> None:
    write("memory: {capacity: 0, scoring: {policy: guess}}\nlong_term: {near_copy: 2}\nnonsense: 1\n")
    assert sorted(problem.split(":")[0] for problem in problems()) == [
        "long_term.near_copy",
        "memory.capacity",
        "memory.scoring.policy",
        "nonsense",
    ]


def test_a_mistake_says_what_is_allowed() -> None:
    write("memory: {scoring: {policy: guess}}")
    assert problems() == ["memory.scoring.policy: input should be 'weighted', 'llm' or 'all'"]


def test_a_misspelled_variable_of_a_section_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_MEMORY__PROMOTE_TRESHOLD", "30")
    (problem,) = problems()
    assert problem.startswith("memory.promote_treshold:")


@pytest.mark.parametrize("text", ["- a list\n", "a word\n", "1: 2\n", "kafka: [\n", "\tkafka: {}\n", "memory: 3\n"])
def test_a_file_that_is_no_mapping_is_one_line(text: str) -> None:
    """Not a traceback, whatever the file holds."""
    write(text)
    assert len(problems()) == 1


def test_a_file_that_is_no_yaml_is_named_with_the_line() -> None:
    write("memory:\n  capacity: @5\n")
    assert problems() == ["config.yaml: is not valid YAML (line 2)"]


def test_a_file_that_is_not_text_is_one_line() -> None:
    Path("config.yaml").write_bytes(b"\xff\xfe\x00")
    assert len(problems()) == 1


@pytest.mark.parametrize(("cold", "active"), [(70, 70), (71, 70), (30, 20)])
def test_the_thresholds_must_be_ordered(cold: int, active: int) -> None:
    write(f"lifecycle: {{cold: {cold}, active: {active}}}")
    (problem,) = problems()
    assert problem.startswith("lifecycle:")
    assert f"cold ({cold}) must be below active ({active})" in problem


@pytest.mark.parametrize("text", ["cold: -1", "active: 100.5", "active: .nan", "cold: .nan"])
def test_the_thresholds_lie_within_0_and_100(text: str) -> None:
    write(f"lifecycle: {{{text}}}")
    assert [problem.split(":")[0] for problem in problems()] == [f"lifecycle.{text.split(':')[0]}"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("after_days", "-1"), ("retention_days", ".inf"), ("link_weight", "1.1"), ("whitelist", "{ids: [x]}")],
)
def test_cleanups_limits_are_days_weights_and_ids(key: str, value: str) -> None:
    write(f"lifecycle: {{cleanup: {{{key}: {value}}}}}")
    (problem,) = problems()
    assert problem.startswith(f"lifecycle.cleanup.{key}")


def test_cleanup_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are JSON; null keeps the archive for ever, as it does in a file."""
    for name, value in {"ENABLED": "true", "RETENTION_DAYS": "null", "WHITELIST__USERS": '["ann"]'}.items():
        monkeypatch.setenv(f"SILTSTONE_LIFECYCLE__CLEANUP__{name}", value)
    cleanup = Settings.load().lifecycle.cleanup
    assert (cleanup.enabled, cleanup.retention_days, cleanup.whitelist.users) == (True, None, ("ann",))
    for name in ("ENABLED", "RETENTION_DAYS", "WHITELIST__USERS"):
        monkeypatch.delenv(f"SILTSTONE_LIFECYCLE__CLEANUP__{name}")
    write("lifecycle: {cleanup: {retention_days: null}}")
    assert Settings.load().lifecycle.cleanup.retention_days is None


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings.load().memory.capacity = 3  # type: ignore[misc]


def test_sasl_without_a_password_is_a_mistake() -> None:
    write("kafka: {security_protocol: SASL_SSL, sasl_username: ann}")
    (problem,) = problems()
    assert "needs sasl_username and sasl_password" in problem


@pytest.mark.parametrize(
    "text",
    [
        "sasl_password: [hunter2]",
        "sasl_password: {hunter2: 1}",
        "sasl_password: hunter2\n  partitions: many",
        "sasl_password: hunter2\n  security_protocol: SASL_SSL",
        'sasl_password: "hunter2',
        "sasl_password: hunter2: 1",
        "sasl_password: @hunter2",
        "sasl_password: *hunter2",
        "sasl_password: !hunter2",
        "sasl_password: &hunter2 *hunter2",
        "sasl_password: hunter2\n  sasl_password_again: hunter2",
    ],
)
def test_no_error_shows_a_password(text: str) -> None:
    """Also where the file is not the YAML that its author meant: passwords begin with signs that YAML uses."""
    write(f"kafka:\n  {text}\n")
    assert "hunter2" not in "\n".join(problems())


@pytest.mark.parametrize("value", ['{"sasl_password": "hunter2"', "hunter2", '{"sasl_password": ["hunter2"]}'])
def test_no_error_shows_a_password_from_the_environment(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_KAFKA", value)
    assert "hunter2" not in "\n".join(problems())


@pytest.mark.parametrize(
    "shown", [repr, str, lambda settings: settings.model_dump_json()], ids=["repr", "str", "json"]
)
def test_settings_show_no_password(shown: Callable[[Settings], str]) -> None:
    write("kafka: {sasl_password: hunter2}")
    settings = Settings.load()
    assert "hunter2" not in shown(settings)
    assert settings.kafka.sasl_password.get_secret_value() == "hunter2"


# The model that rates

LLM = "llm: {api_key: sk-llm, base_url: 'https://llm.example/v1', model: llm-model}\n"
SCORING = "memory: {scoring: {api_key: sk-scoring, base_url: 'https://scoring.example/v1', model: scoring-model}}\n"


def rater_of(text: str) -> tuple[str, str, str] | None:
    """Key, URL and model of the rating model that a file gives."""
    write(text)
    rater = Settings.load().rater()
    return None if rater is None else (rater.api_key.get_secret_value(), rater.base_url, rater.model)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "llm: {api_key: '', base_url: 'https://llm.example/v1', model: m}",
        "llm: {api_key: ' '}\nmemory: {scoring: {api_key: ' ', base_url: 'https://scoring.example/v1'}}",
        "memory: {scoring: {base_url: 'https://scoring.example/v1', model: m, policy: llm}}",
    ],
)
def test_without_any_key_no_model_rates(text: str) -> None:
    """Whatever else is set: the local estimator does."""
    assert rater_of(text) is None


def test_the_scorings_own_service_rates() -> None:
    assert rater_of(LLM + SCORING) == ("sk-scoring", "https://scoring.example/v1", "scoring-model")


def test_an_empty_scoring_key_falls_back_to_the_llm() -> None:
    assert rater_of(LLM) == ("sk-llm", "https://llm.example/v1", "llm-model")


@pytest.mark.parametrize("key", ["", "api_key: '', "])
def test_the_llms_key_goes_to_the_llms_url_only(key: str) -> None:
    """Not to the one that the scoring names without a key of its own. The model may still be another."""
    scoring = f"memory: {{scoring: {{{key}base_url: 'https://scoring.example/v1', model: small}}}}"
    assert rater_of(LLM + scoring) == ("sk-llm", "https://llm.example/v1", "small")


def test_the_scorings_key_goes_to_openai_where_it_names_no_url() -> None:
    """Not to the llm's."""
    assert rater_of(LLM + "memory: {scoring: {api_key: sk-scoring}}") == ("sk-scoring", OPENAI_URL, "llm-model")


def test_an_empty_llm_key_falls_back_to_openais_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and URL together: the file's URL does not get the environment's key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://env.example/v1")
    assert rater_of("") == ("sk-env", "https://env.example/v1", DEFAULT_MODEL)
    assert rater_of("llm: {api_key: '', base_url: 'https://llm.example/v1', model: m}") == (
        *("sk-env", "https://env.example/v1"),
        "m",
    )
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert rater_of("llm: {base_url: 'https://llm.example/v1'}") == ("sk-env", OPENAI_URL, DEFAULT_MODEL)


@pytest.mark.parametrize(
    ("text", "rater"),
    [
        ("llm: {api_key: sk-llm}", ("sk-llm", OPENAI_URL, DEFAULT_MODEL)),
        (LLM, ("sk-llm", "https://llm.example/v1", "llm-model")),
        (SCORING, ("sk-scoring", "https://scoring.example/v1", "scoring-model")),
    ],
)
def test_a_key_of_the_settings_wins_over_openais_variables(
    monkeypatch: pytest.MonkeyPatch, text: str, rater: tuple[str, str, str]
) -> None:
    """And goes nowhere that they name."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://env.example/v1")
    assert rater_of(text) == rater


def test_openais_url_without_its_key_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://env.example/v1")
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert rater_of("") is None
    assert rater_of("llm: {api_key: sk-llm}") == ("sk-llm", OPENAI_URL, DEFAULT_MODEL)


def test_the_rater_is_asked_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the environment as well; the line end of a key that comes from a file is dropped."""
    monkeypatch.setenv("SILTSTONE_MEMORY__SCORING__API_KEY", "sk-scoring\n")
    monkeypatch.setenv("SILTSTONE_MEMORY__SCORING__BASE_URL", "http://127.0.0.1:8080/v1/")
    monkeypatch.setenv("SILTSTONE_MEMORY__SCORING__CONCURRENCY", "3")
    monkeypatch.setenv("SILTSTONE_MEMORY__SCORING__TIMEOUT_SECONDS", "1.5")
    rater = Settings.load().rater()
    assert rater is not None
    assert (rater.api_key.get_secret_value(), rater.base_url) == ("sk-scoring", "http://127.0.0.1:8080/v1")
    assert (rater.concurrency, rater.timeout_seconds) == (3, 1.5)


@pytest.mark.parametrize("policy", ["weighted", "llm", "all"])
def test_the_policies(policy: str) -> None:
    write(f"memory: {{scoring: {{policy: {policy}}}}}")
    assert Settings.load().memory.scoring.policy == policy


@pytest.mark.parametrize(
    "text",
    [
        *("concurrency: 0", "concurrency: 257", "concurrency: many"),
        *("timeout_seconds: 0", "timeout_seconds: -1", "timeout_seconds: .nan", "timeout_seconds: .inf"),
        *(
            "base_url: llm.example/v1",
            "base_url: 'ftp://llm.example'",
            "base_url: 'https://'",
            "base_url: 'http://['",
        ),
        *("base_url: 'https://llm.example/v1?key=1'", "base_url: 'https://user:password@llm.example/v1'"),
        *("api_key: sk-秘密", 'api_key: "sk-two\\nlines"'),
    ],
)
def test_a_mistake_about_the_rater_is_one_line_with_its_path(text: str) -> None:
    write(f"memory:\n  scoring:\n    {text}")
    (problem,) = problems()
    assert problem.startswith(f"memory.scoring.{text.split(':')[0]}:")


@pytest.mark.parametrize(
    "text",
    [
        "llm: {api_key: [hunter2]}",
        "llm: {api_key: hunter2, base_url: hunter2}",
        "llm: {base_url: 'https://hunter2@llm.example'}",
        "llm: {base_url: 'https://llm.example/?hunter2'}",
        "llm: {api_key: hunter2, timeout: 3}",
        "llm: {api_key: hunter2秘密}",
        'memory: {scoring: {api_key: "hunter2\\n2"}}',
        "memory: {scoring: {api_key: hunter2, concurrency: 0}}",
    ],
)
def test_no_error_shows_a_key(text: str) -> None:
    write(text)
    assert "hunter2" not in "\n".join(problems())


def test_no_error_shows_a_key_of_openais_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    monkeypatch.setenv("OPENAI_BASE_URL", "hunter2")
    (problem,) = problems()
    assert problem.startswith("llm.base_url:")
    assert "hunter2" not in problem


@pytest.mark.parametrize("shown", [repr, str, lambda value: f"{value:}"], ids=["repr", "str", "format"])
def test_no_key_is_shown(monkeypatch: pytest.MonkeyPatch, shown: Callable[[object], str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    settings = Settings.load()
    assert settings.rater() is not None
    assert "hunter2" not in shown(settings) + shown(settings.llm) + shown(settings.rater())
    write(SCORING.replace("sk-scoring", "hunter2"))
    settings = Settings.load()
    assert "hunter2" not in shown(settings) + shown(settings.memory) + shown(settings.rater())


# The embedding service

EMBEDDING = "embedding: {backend: openai, api_key: sk-emb, base_url: 'https://emb.example/v1', model: emb-model}\n"


def embedder_of(text: str) -> tuple[str, str, str]:
    """Key, URL and model of the embedding service that a file gives."""
    write(text)
    embedder = Settings.load().embedder()
    return embedder.api_key.get_secret_value(), embedder.base_url, embedder.model


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("backend: use", "paraphrase-multilingual-MiniLM-L12-v2"),
        ("backend: e5", "paraphrase-multilingual-MiniLM-L12-v2"),
        ("backend: sentence-transformers", "paraphrase-multilingual-MiniLM-L12-v2"),
        ("backend: sentence-transformers, model: ''", "paraphrase-multilingual-MiniLM-L12-v2"),
        ("backend: sentence-transformers, model: /models/mine", "/models/mine"),
        ("backend: openai", "text-embedding-3-small"),
        ("backend: openai, model: ' '", "text-embedding-3-small"),
        ("model: mine, backend: openai", "mine"),
    ],
)
def test_each_embedding_backend_has_its_default_model(text: str, model: str) -> None:
    write(f"embedding: {{{text}}}")
    assert Settings.load().embedding.model == model


def test_white_space_and_an_empty_prefix_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one stands for no prefix; none at all for the model's own prompt."""
    write('embedding: {query_prefix: "query: ", document_prefix: ""}')
    embedding = Settings.load().embedding
    assert (embedding.query_prefix, embedding.document_prefix) == ("query: ", "")
    monkeypatch.setenv("SILTSTONE_EMBEDDING__QUERY_PREFIX", "Instruct: find it\nQuery:")
    monkeypatch.setenv("SILTSTONE_EMBEDDING__DOCUMENT_PREFIX", "passage: ")
    embedding = Settings.load().embedding
    assert (embedding.query_prefix, embedding.document_prefix) == ("Instruct: find it\nQuery:", "passage: ")
    write("embedding: {backend: use}")
    monkeypatch.delenv("SILTSTONE_EMBEDDING__QUERY_PREFIX")
    monkeypatch.setenv("SILTSTONE_EMBEDDING__DOCUMENT_PREFIX", "")
    embedding = Settings.load().embedding
    assert (embedding.query_prefix, embedding.document_prefix) == (None, "")


def test_a_local_model_needs_no_service() -> None:
    """Whatever there is of one."""
    write(LLM + "embedding: {backend: use, base_url: 'https://emb.example/v1'}")
    settings = Settings.load()
    assert settings.embedder() == settings.embedding


@pytest.mark.parametrize(
    ("text", "service"),
    [
        (EMBEDDING, ("sk-emb", "https://emb.example/v1", "emb-model")),
        (LLM + EMBEDDING, ("sk-emb", "https://emb.example/v1", "emb-model")),
        (LLM + "embedding: {backend: openai}", ("sk-llm", "https://llm.example/v1", OPENAI_EMBEDDINGS)),
        (LLM + "embedding: {backend: openai, api_key: ' '}", ("sk-llm", "https://llm.example/v1", OPENAI_EMBEDDINGS)),
        (LLM + "embedding: {backend: openai, api_key: sk-emb}", ("sk-emb", OPENAI_URL, OPENAI_EMBEDDINGS)),
        ("llm: {api_key: sk-llm}\nembedding: {backend: openai, model: m}", ("sk-llm", OPENAI_URL, "m")),
    ],
)
def test_key_and_url_of_the_embedding_service_go_together(text: str, service: tuple[str, str, str]) -> None:
    """Its own, or without a key the llm's: never a key to another service's URL. The llm's model is no embedder."""
    assert embedder_of(text) == service


def test_openais_variables_are_the_embedding_services_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://env.example/v1")
    assert embedder_of("embedding: {backend: openai}") == ("sk-env", "https://env.example/v1", OPENAI_EMBEDDINGS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "embedding: {backend: openai}",
            "embedding.api_key: the backend openai needs a key: set embedding.api_key, or llm.api_key",
        ),
        (
            LLM + "embedding: {backend: openai, base_url: 'http://127.0.0.1:11434/v1'}",
            "embedding.api_key: is empty, but embedding.base_url is set: set the key (any text if the service needs "
            "none), or remove the URL",
        ),
    ],
)
def test_an_embedding_service_without_a_key_is_a_mistake(text: str, problem: str) -> None:
    """Also where the llm has one: what is kept would go to its URL, not to the one that is named."""
    write(text)
    with pytest.raises(SettingsError) as caught:
        Settings.load().embedder()
    assert caught.value.problems == [problem]


@pytest.mark.parametrize(
    "text",
    [
        *("timeout_seconds: 0", "timeout_seconds: 3601", "dimensions: 0", "batch_size: 0", "batch_size: 2049"),
        *(f"document_prefix: {'x' * 1001}", f"query_input_type: {'x' * 101}", "input_type_name: model"),
        *("base_url: emb.example/v1", "base_url: 'https://user:hunter2@emb.example/v1'", "api_key: hunter2秘密"),
    ],
)
def test_a_mistake_about_embedding_is_one_line_with_its_path(text: str) -> None:
    """Without the secret that is in it."""
    write(f"embedding:\n  backend: openai\n  {text}")
    (problem,) = problems()
    assert problem.startswith(f"embedding.{text.split(':')[0]}:")
    assert "hunter2" not in problem


@pytest.mark.parametrize("shown", [repr, str, lambda value: f"{value:}"], ids=["repr", "str", "format"])
def test_no_embedding_key_is_shown(shown: Callable[[object], str]) -> None:
    write(EMBEDDING.replace("sk-emb", "hunter2"))
    settings = Settings.load()
    assert "hunter2" not in shown(settings) + shown(settings.embedding) + shown(settings.embedder())


def test_the_promote_threshold_comes_from_file_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment wins."""
    write("memory:\n  promote_threshold: 20\n")
    assert Settings.load().memory.promote_threshold == 20
    monkeypatch.setenv("SILTSTONE_MEMORY__PROMOTE_THRESHOLD", "30")
    assert Settings.load().memory.promote_threshold == 30


def test_a_log_that_is_to_be_shorter_than_checkpoints_need_is_a_mistake() -> None:
    text = "checkpoints: {{url: file:///kept, keep: 2, seconds: 60}}\nkafka: {{long_term_retention_ms: {}}}\n"
    Path("config.yaml").write_text(text.format(86_519_999), encoding="utf-8")
    with pytest.raises(SettingsError, match="the log must reach back 86520000 ms"):
        Settings.load()
    for enough in (86_520_000, -1):
        Path("config.yaml").write_text(text.format(enough), encoding="utf-8")
        assert Settings.load().checkpoints.log_ms == 86_520_000


# The reranker

RERANK = "rerank: {backend: service, model: judge, api_key: sk-rr, base_url: 'https://rr.example/v2'}\n"


@pytest.mark.parametrize("text", ["", "rerank: {}", "rerank: {model: ' ', backend: service}"])
def test_nothing_is_reranked_unless_a_model_is_named(text: str) -> None:
    write(text)
    assert Settings.load().reranker() is None


@pytest.mark.parametrize(
    ("text", "service"),
    [
        (RERANK, ("sk-rr", "https://rr.example/v2", "judge")),
        (LLM + RERANK, ("sk-rr", "https://rr.example/v2", "judge")),
        (LLM + "rerank: {backend: service, model: judge}", ("sk-llm", "https://llm.example/v1", "judge")),
        (LLM + "rerank: {model: /models/judge}", ("", "", "/models/judge")),
    ],
)
def test_key_and_url_of_the_reranker_go_together(text: str, service: tuple[str, str, str]) -> None:
    """Its own, or without a key the llm's; a local model needs neither."""
    write(text)
    rerank = Settings.load().reranker()
    assert rerank is not None
    assert (rerank.api_key.get_secret_value(), rerank.base_url, rerank.model) == service
    assert (rerank.timeout_seconds, rerank.candidates) == (2.0, 30)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "rerank: {backend: service, model: judge}",
            "rerank.api_key: the backend service needs a key: set rerank.api_key, or llm.api_key",
        ),
        (
            LLM + "rerank: {backend: service, model: judge, base_url: 'http://127.0.0.1:8080'}",
            "rerank.api_key: is empty, but rerank.base_url is set: set the key (any text if the service needs none), "
            "or remove the URL",
        ),
        (
            "llm: {api_key: sk-llm}\nrerank: {backend: service, model: judge}",
            "rerank.base_url: is empty, and OpenAI has no rerankers: set the service's URL",
        ),
        (
            LLM + "rerank: {backend: service, model: judge, api_key: sk-rr}",
            "rerank.base_url: is empty, and OpenAI has no rerankers: set the service's URL",
        ),
    ],
)
def test_a_reranker_without_key_or_url_is_a_mistake(text: str, problem: str) -> None:
    write(text)
    with pytest.raises(SettingsError) as caught:
        Settings.load().reranker()
    assert caught.value.problems == [problem]


@pytest.mark.parametrize(
    "text",
    [
        *("timeout_seconds: 0", "timeout_seconds: 9", "candidates: 0", "candidates: 201", "backend: cohere"),
        *("base_url: rr.example", "base_url: 'https://user:hunter2@rr.example/v1'", "api_key: hunter2秘密"),
    ],
)
def test_a_mistake_about_reranking_is_one_line_with_its_path(text: str) -> None:
    """Without the secret that is in it."""
    write(f"rerank:\n  model: judge\n  {text}")
    (problem,) = problems()
    assert problem.startswith(f"rerank.{text.split(':')[0]}:")
    assert "hunter2" not in problem


def test_the_reranker_comes_from_the_environment_and_its_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"MODEL": "judge", "BACKEND": "service", "API_KEY": "hunter2", "BASE_URL": "https://rr.example/v2/"}
    for name, value in {**given, "TIMEOUT_SECONDS": "0.5", "CANDIDATES": "50"}.items():
        monkeypatch.setenv(f"SILTSTONE_RERANK__{name}", value)
    rerank = Settings.load().reranker()
    assert rerank is not None
    assert (rerank.base_url, rerank.timeout_seconds, rerank.candidates) == ("https://rr.example/v2", 0.5, 50)
    assert "hunter2" not in repr(Settings.load()) + repr(rerank) + str(rerank)

"""What settings and environment make of daily summaries: the model, its service, the interval, and the warnings."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import SettingsError
from schemas.settings import OPENAI_URL, AgentsSettings, LlmSettings, Settings, SummaryPlan, SummarySettings
from schemas.settings.summaries import DEFAULT_CONTEXT_TOKENS, DEFAULT_INTERVAL, summary_plan

MODEL, INTERVAL, AUTO = "NANOBOT_SUMMARY_MODEL", "NANOBOT_SUMMARY_INTERVAL", "NANOBOT_AUTO_SUMMARY"
KEY = "sk-secret-0123456789"
LLM = f"llm: {{api_key: {KEY}, base_url: 'https://llm.example/v1', model: judge-1}}\n"
DEEPSEEK = f"llm: {{providers: {{deepseek: {{api_key: {KEY}, base_url: 'https://deepseek.example/v1'}}}}}}\n"


def plan_of(text: str) -> SummaryPlan:
    """What a file, and the environment as it is, come to."""
    Path("config.yaml").write_text(text, encoding="utf-8")
    plan = Settings.load().summaries()
    told = "\n".join(map(str, plan.warnings)) + repr(plan) + str(plan)
    assert KEY not in told
    return plan


def asked(plan: SummaryPlan) -> tuple[str, str] | None:
    """URL and model that get the key."""
    if plan.model is None:
        return None
    assert plan.model.api_key.get_secret_value() == KEY
    return plan.model.base_url, plan.model.model


# The model


def test_without_any_setting_summaries_are_extractive_and_automatic() -> None:
    plan = plan_of("")
    assert (plan.model, plan.warnings) == (None, ())
    assert (plan.automatic, plan.interval, plan.max_tokens, plan.language) == (True, 10, 4_000, "auto")
    assert plan.timezone.key == "UTC"


def test_the_environment_names_the_model_before_the_summaries_and_these_before_the_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    defaults = LLM + "agents: {defaults: {model: openai/main}"
    assert asked(plan_of(defaults + "}")) == ("https://llm.example/v1", "main")
    summary = defaults + ", summary: {model: openai/own}}"
    assert asked(plan_of(summary)) == ("https://llm.example/v1", "own")
    monkeypatch.setenv(MODEL, " openai/of-the-environment\n")
    assert asked(plan_of(summary)) == ("https://llm.example/v1", "of-the-environment")
    assert plan_of(summary).warnings == ()


@pytest.mark.parametrize("variable", ["SILTSTONE_AGENTS__SUMMARY__MODEL", "SILTSTONE_AGENTS__DEFAULTS__MODEL"])
def test_the_models_settings_are_set_by_the_environment_too(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "openai/small")
    assert asked(plan_of(LLM)) == ("https://llm.example/v1", "small")


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("deepseek/deepseek-chat", "deepseek-chat"),
        ("DeepSeek/deepseek-chat", "deepseek-chat"),
        ("openrouter/deepseek/deepseek-chat:free", "deepseek/deepseek-chat:free"),
        ("my_own-1/模型", "模型"),
        ("a/b", "b"),
    ],
)
def test_a_model_is_a_provider_and_a_name_that_may_hold_slashes(name: str, sent: str) -> None:
    plan = plan_of(LLM + f"agents: {{summary: {{model: '{name}'}}}}")
    assert (asked(plan), plan.warnings) == (("https://llm.example/v1", sent), ())


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-4o", "/gpt-4o", "openai/", "openai//gpt-4o", "openai/gpt-4o/", "open ai/gpt", "openai/gpt 4"),
        *("openai /gpt", "openai/ gpt", "a.b/c", "openai/gpt\x07", "https://x.example/v1", "5", "深度/模型"),
    ],
)
def test_an_invalid_name_is_a_warning_and_the_next_one_is_used(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The warning names the setting and the form, and not the value."""
    file = LLM + "agents: {summary: {model: openai/own}}"
    monkeypatch.setenv(MODEL, name)
    plan = plan_of(file)
    assert asked(plan) == ("https://llm.example/v1", "own")
    (warning,) = map(str, plan.warnings)
    assert warning == (
        f"{MODEL}: is not of the form provider/model, so it is not used; write it like deepseek/deepseek-chat"
    )


def test_where_no_name_is_valid_summaries_are_extractive_with_a_warning_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where YAML reads a name as a number."""
    monkeypatch.setenv(MODEL, "gpt-4o")
    plan = plan_of(LLM + "agents: {defaults: {model: 4.1}, summary: {model: gpt-4o}}")
    assert plan.model is None
    assert [warning.what.split(":")[0] for warning in plan.warnings] == [
        *(MODEL, "agents.summary.model", "agents.defaults.model")
    ]


def test_an_empty_name_is_none() -> None:
    assert plan_of("agents: {defaults: {model: ''}, summary: {model: }}").warnings == ()


# Whose service


@pytest.mark.parametrize(
    ("file", "model", "service"),
    [
        (DEEPSEEK, "deepseek/v3", ("https://deepseek.example/v1", "v3")),
        (DEEPSEEK.replace("deepseek:", "DeepSeek:"), "deepseek/v3", ("https://deepseek.example/v1", "v3")),
        (f"llm: {{providers: {{openai: {{api_key: {KEY}}}}}}}", "openai/gpt", (OPENAI_URL, "gpt")),
        (f"llm: {{api_key: {KEY}}}", "openai/gpt", (OPENAI_URL, "gpt")),
        (LLM, "openai/gpt", ("https://llm.example/v1", "gpt")),
        (LLM, "deepseek/v3", ("https://llm.example/v1", "v3")),
        (
            f"llm: {{api_key: {KEY}, providers: {{openai: {{context_tokens: 128000}}}}}}",
            "openai/gpt",
            (OPENAI_URL, "gpt"),
        ),
    ],
)
def test_the_service_is_the_providers_own_or_that_of_llm(file: str, model: str, service: tuple[str, str]) -> None:
    """The latter for OpenAI's models, and for every other where it has a URL."""
    plan = plan_of(f"{file}\nagents: {{summary: {{model: {model}}}}}")
    assert (asked(plan), plan.warnings) == (service, ())


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("", "llm.providers.deepseek.api_key: the summaries' model needs a key"),
        ("llm: {base_url: 'https://llm.example/v1'}", "llm.providers.deepseek.api_key: the summaries' model needs"),
        (f"llm: {{api_key: {KEY}}}", "llm.providers.deepseek: is not set, and llm.base_url does not name a service"),
        (
            f"llm: {{providers: {{deepseek: {{api_key: {KEY}}}}}}}",
            "llm.providers.deepseek.base_url: is empty, so its",
        ),
        (
            LLM.replace("model: judge-1", "providers: {deepseek: {base_url: 'https://deepseek.example/v1'}}"),
            "llm.providers.deepseek.api_key: is empty, but its base_url is set",
        ),
        (
            f"llm: {{api_key: {KEY}, providers: {{other: {{api_key: {KEY}, base_url: 'https://other.example'}}}}}}",
            "llm.providers.deepseek: is not set",
        ),
    ],
)
def test_a_key_is_sent_to_no_other_service_than_the_one_beside_it(file: str, what: str) -> None:
    """Rather than that, summaries are extractive, and a warning names the setting that is missing."""
    plan = plan_of(f"{file}\nagents: {{summary: {{model: deepseek/deepseek-chat}}}}")
    assert plan.model is None
    (warning,) = map(str, plan.warnings)
    assert warning.startswith(what)
    assert warning.endswith("until then summaries are extractive")


def test_openais_variables_serve_openais_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """And any other where they name a URL; a URL of the file does not get the environment's key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    file = "llm: {base_url: 'https://llm.example/v1'}\nagents: {summary: {model: NAME}}"
    assert asked(plan_of(file.replace("NAME", "openai/gpt"))) == (OPENAI_URL, "gpt")
    assert asked(plan_of(file.replace("NAME", "deepseek/v3"))) is None
    monkeypatch.setenv("OPENAI_BASE_URL", "https://env.example/v1")
    assert asked(plan_of(file.replace("NAME", "deepseek/v3"))) == ("https://env.example/v1", "v3")


def test_a_provider_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_LLM__PROVIDERS__DEEPSEEK__API_KEY", f"{KEY}\n")
    monkeypatch.setenv("SILTSTONE_LLM__PROVIDERS__DEEPSEEK__BASE_URL", "https://deepseek.example/v1/")
    plan = plan_of("agents: {summary: {model: deepseek/v3}}")
    assert asked(plan) == ("https://deepseek.example/v1", "v3")


def test_the_raters_service_is_as_it_was() -> None:
    """Whatever providers there are."""
    assert plan_of(DEEPSEEK).model is None
    assert Settings.load().rater() is None


def test_the_models_limit_is_its_providers() -> None:
    file = "llm: {providers: {deepseek: {context_tokens: 64000}}}\nagents: {summary: {model: NAME/v3}}"
    assert plan_of(file.replace("NAME", "deepseek")).context_tokens == 64_000
    assert plan_of(file.replace("NAME", "openai")).context_tokens == DEFAULT_CONTEXT_TOKENS


def test_it_is_asked_as_the_settings_say() -> None:
    plan = plan_of(LLM + "agents: {summary: {model: openai/gpt, timeout_seconds: 5, concurrency: 3}}")
    assert plan.model is not None
    assert (plan.model.timeout_seconds, plan.model.concurrency) == (5, 3)


# Mistakes of a provider's section


@pytest.mark.parametrize(
    ("providers", "path"),
    [
        ("{a: {base_url: hunter2}}", "llm.providers.a.base_url"),
        ("{a: {api_key: hunter2é}}", "llm.providers.a.api_key"),
        ("{a: {api_kye: hunter2}}", "llm.providers.a.api_kye"),
        ("{a: {context_tokens: 100}}", "llm.providers.a.context_tokens"),
        ("{a: hunter2}", "llm.providers.a"),
        ("{'a b': {}}", "llm.providers.a b.[key]"),
        ("{DeepSeek: {api_key: hunter2}, deepseek: {}}", "llm.providers"),
        ("[hunter2]", "llm.providers"),
    ],
)
def test_a_mistake_about_a_provider_is_one_line_without_its_key(providers: str, path: str) -> None:
    with pytest.raises(SettingsError) as caught:
        plan_of(f"llm: {{providers: {providers}}}")
    (problem,) = caught.value.problems
    assert problem.startswith(f"{path}:")
    assert "hunter2" not in problem


# The interval


@pytest.mark.parametrize(("value", "interval"), [("0", 0), ("1", 1), (" 25 ", 25), ("100", 100), ("007", 7)])
def test_an_interval_is_an_integer_from_0_to_100(monkeypatch: pytest.MonkeyPatch, value: str, interval: int) -> None:
    """From the environment first, then from the file; 0 is never by count."""
    file = f"agents: {{summary: {{interval: {int(value)}}}}}"
    assert (plan_of(file).interval, plan_of(file).warnings) == (interval, ())
    monkeypatch.setenv(INTERVAL, value)
    plan = plan_of("agents: {summary: {interval: 33}}")
    assert (plan.interval, plan.warnings) == (interval, ())


@pytest.mark.parametrize(
    "value", ["-1", "101", "10.5", "10.0", "ten", "1e1", "null", "true", "[5]", "'٥'", "1000000"]
)
def test_any_other_interval_is_a_warning_and_ten(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Not a mistake, and not the next one in the order."""
    told = f"is not an integer from 0 to 100, so {DEFAULT_INTERVAL} is used; correct it"
    plan = plan_of(f"agents: {{summary: {{interval: {value}}}}}")
    assert (plan.interval, [str(warning) for warning in plan.warnings]) == (10, [f"agents.summary.interval: {told}"])
    monkeypatch.setenv(INTERVAL, value)
    plan = plan_of("agents: {summary: {interval: 33}}")
    assert (plan.interval, [str(warning) for warning in plan.warnings]) == (10, [f"{INTERVAL}: {told}"])


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.lists(st.integers())))
def test_whatever_the_interval_is_there_is_one(value: object) -> None:
    agents = AgentsSettings(summary=SummarySettings(interval=value))
    plan = summary_plan(agents, LlmSettings(), Path("data"), {INTERVAL: value} if isinstance(value, str) else {})
    assert 0 <= plan.interval <= 100
    assert len(plan.warnings) <= 1


# By themselves, or on request alone


@pytest.mark.parametrize("value", ["false", "0", "no", "off", " FALSE "])
def test_the_environment_turns_automatic_summaries_off(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(AUTO, value)
    plan = plan_of("agents: {summary: {enabled: true}}")
    assert (plan.automatic, plan.warnings) == (False, ())


@pytest.mark.parametrize("value", ["", "true", "1", "yes", "on"])
def test_the_file_turns_them_off_too(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """And the environment does not turn them on again: each of the two is enough."""
    monkeypatch.setenv(AUTO, value)
    assert not plan_of("agents: {summary: {enabled: false}}").automatic
    assert plan_of("").automatic


def test_what_is_neither_true_nor_false_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTO, "never")
    plan = plan_of("")
    assert plan.automatic
    assert [warning.what for warning in plan.warnings] == [f"{AUTO}: is neither true nor false, so it is not used"]


# The rest


def test_the_answers_limit_is_spelt_in_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment wins over the file, whose spelling is another."""
    assert plan_of("agents: {summary: {maxTokens: 700}}").max_tokens == 700
    assert plan_of("agents: {summary: {max_tokens: 800}}").max_tokens == 800
    monkeypatch.setenv("SILTSTONE_AGENTS__SUMMARY__MAX_TOKENS", "900")
    assert plan_of("agents: {summary: {maxTokens: 700}}").max_tokens == 900


def test_days_are_merged_unless_either_spelling_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan_of("").merge_at_day_end
    assert not plan_of("agents: {summary: {mergeAtDayEnd: false}}").merge_at_day_end
    assert not plan_of("agents: {summary: {merge_at_day_end: false}}").merge_at_day_end
    monkeypatch.setenv("SILTSTONE_AGENTS__SUMMARY__MERGE_AT_DAY_END", "true")
    assert plan_of("agents: {summary: {mergeAtDayEnd: false}}").merge_at_day_end


@pytest.mark.parametrize(
    "text",
    [
        *(
            "maxTokens: 10",
            "maxTokens: many",
            "language: fr",
            "enabled: maybe",
            "timeout_seconds: 0",
            "concurrency: 0",
        ),
        *("timezone: Mars/Olympus", "timezone: ''", "timezone: America", "timezone: ../UTC", "timezone: +08:00"),
    ],
)
def test_other_mistakes_are_one_line_with_their_path(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        plan_of(f"agents: {{summary: {{{text}}}}}")
    (problem,) = caught.value.problems
    key = text.split(":")[0].replace("maxTokens", "max_tokens")
    assert problem.startswith(f"agents.summary.{key}:")


def test_a_zone_is_an_iana_name() -> None:
    assert plan_of("agents: {summary: {timezone: Asia/Shanghai}}").timezone.key == "Asia/Shanghai"


@pytest.mark.parametrize(
    "phrase",
    [
        *("总结今天的对话", "生成每日概要", "总结一下今天"),
        *("summarize today", "summarise today", "summarize our conversation today"),
    ],
)
def test_the_request_phrases_are_the_designs(phrase: str) -> None:
    assert phrase in plan_of("").request_phrases


def test_the_request_phrases_can_be_others() -> None:
    assert plan_of("agents: {summary: {request_phrases: [was war heute]}}").request_phrases == ("was war heute",)


def test_the_second_place_is_in_the_home_directory_and_each_data_directorys_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    one, other = plan_of("data_dir: a/data").fallback_dir, plan_of("data_dir: b/data").fallback_dir
    assert one is not None
    assert other is not None
    assert one != other
    assert one.parent == other.parent == tmp_path / "home" / ".siltstone" / "memory"
    assert one.name.startswith("data-")
    assert plan_of("data_dir: a/data").fallback_dir == one
    assert plan_of("agents: {summary: {fallback_dir: ~/x}}").fallback_dir == tmp_path / "home" / "x"


def test_without_a_home_directory_there_is_no_second_place_and_a_warning() -> None:
    plan = plan_of("agents: {summary: {fallback_dir: ~nobody-of-this-name/x}}")
    assert plan.fallback_dir is None
    assert "there is no home directory" in str(*plan.warnings)


def test_nothing_is_logged_by_the_settings(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warnings are values: whoever starts a worker logs them."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(INTERVAL, "ten")
    assert plan_of("").warnings
    assert not caplog.records

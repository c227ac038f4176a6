"""The words that scoring looks for, as they stand when the settings name no others."""

# fmt: off
STRONG_EMOTIONS = (
    "悲伤", "愤怒", "惊讶", "伤心", "难过", "生气", "震惊",
    "sad", "sadness", "angry", "anger", "surprised", "surprise", "grief", "furious", "shocked",
)

CONTENT_KEYWORDS = (
    "叫", "喜欢", "记住", "约好", "生日", "讨厌", "过敏", "住在", "答应", "预约", "约定", "爱吃", "最爱",
    "my name", "i'm called", "like", "love", "hate", "prefer", "favorite", "favourite", "birthday", "anniversary",
    "allergic", "allergy", "promise", "appointment", "live in", "remember",
)

FORCE_PHRASES = (
    "请记住", "帮我记住", "记一下", "记住", "请记得", "帮我记得", "记得", "别忘了", "别忘记", "不要忘了", "不要忘记",
    "請記住", "幫我記住", "記一下", "記住", "請記得", "幫我記得", "記得", "別忘了", "別忘記", "不要忘記",
    "remember that", "remember my", "please remember", "could you remember", "don't forget", "do not forget",
)

SUMMARY_PHRASES = (
    "总结今天的对话", "总结一下今天", "总结今日", "总结一下今日", "总结我们今天的对话",
    "今天的对话总结一下", "今天的对话总结下", "今天的聊天总结一下", "总结一下我们今天", "总结我们今天",
    "總結今天的對話", "總結一下今天", "今天的對話總結一下",
    "生成每日概要", "生成今日概要", "生成每日总结", "生成今天的总结", "给我每日总结", "给我今天的总结",
    "summarize today", "summarise today", "summarize our conversation today", "summarise our conversation today",
    "summarize the conversation today", "summarise the conversation today", "generate a daily summary",
    "give me a daily summary", "give me the daily summary", "give me today's summary", "give me a summary of today",
    "a summary of our conversation today", "sum up today", "sum up our conversation today",
)
# fmt: on

"""The default words for scoring an exchange, and the default phrases of requests to remember or to summarize.

They are in sixteen languages. The settings can replace them.
"""

# fmt: off
STRONG_EMOTIONS = (
    "悲伤", "愤怒", "惊讶", "伤心", "难过", "生气", "震惊",
    "sad", "sadness", "angry", "anger", "surprised", "surprise", "grief", "furious", "shocked",
    "悲傷", "憤怒", "驚訝", "傷心", "難過", "生氣", "震驚",
    "traurig", "trauer", "wütend", "wut", "zornig", "überrascht", "überraschung", "entsetzt",
    "triste", "tristesse", "colère", "en colère", "furieux", "furieuse", "surpris", "surprise", "choqué", "choquée",
    "tristeza", "enfadado", "enfadada", "enojado", "enojada", "ira", "sorprendido", "sorprendida", "sorpresa",
    "furioso", "furiosa",
    "tristezza", "arrabbiato", "arrabbiata", "rabbia", "sorpreso", "sorpresa", "scioccato", "scioccata",
    "verdrietig", "verdriet", "boos", "boosheid", "woedend", "verrast", "verrassing", "geschokt",
    "raiva", "zangado", "zangada", "bravo", "brava", "surpreso", "surpresa", "chocado", "chocada",
    "smutny", "smutna", "smutek", "zły", "zła", "złość", "wściekły", "wściekła", "zaskoczony", "zaskoczona",
    "zaskoczenie",
    "грустный", "грустная", "грусть", "печаль", "злой", "злая", "злость", "гнев", "удивлён", "удивлена", "удивление",
    "üzgün", "üzüntü", "kızgın", "öfke", "öfkeli", "şaşkın", "şaşkınlık",
    "حزين", "حزينة", "حزن", "غاضب", "غاضبة", "غضب", "متفاجئ", "متفاجئة", "مفاجأة", "دهشة",
    "悲しい", "悲しみ", "怒り", "怒っている", "驚き", "驚いた",
    "슬픔", "슬픈", "슬프다", "분노", "화남", "화난", "놀람", "놀란",
    "เศร้า", "ความเศร้า", "โกรธ", "ความโกรธ", "ตกใจ", "ประหลาดใจ",
)

CONTENT_KEYWORDS = (
    "叫", "喜欢", "记住", "约好", "生日", "讨厌", "过敏", "住在", "答应", "预约", "约定", "爱吃", "最爱",
    "my name", "i'm called", "like", "love", "hate", "prefer", "favorite", "favourite", "birthday", "anniversary",
    "allergic", "allergy", "promise", "appointment", "live in", "remember",
)

#: Phrases that are a request only at the beginning of a clause. In other positions they are statements about a
#: person.
ORDERS_FIRST = (
    "merk dir", "merke dir", "merken sie sich", "vergiss nicht", "vergessen sie nicht", "denk daran", "denk dran",
    "denken sie daran", "notier dir", "notiere dir", "behalte im kopf",
    "souviens-toi", "souvenez-vous", "rappelle-toi", "rappelez-vous", "retiens que", "retenez que", "n'oublie pas",
    "n'oubliez pas", "mémorise", "note que", "garde en mémoire",
    "recuerda que", "recuerde que", "recuerda mi", "acuérdate", "acuérdese", "no olvides", "no te olvides",
    "no olvide",
    "ten en cuenta que", "memoriza", "apunta que",
    "ricorda che", "ricorda il mio", "ricorda la mia", "ricordati", "si ricordi", "non dimenticare",
    "non dimenticarti",
    "tieni a mente", "memorizza", "segnati che",
    "onthoud", "onthou", "vergeet niet", "denk eraan", "noteer dat",
    "lembre-se", "lembra-te", "lembre que", "lembra que", "não esqueça", "não se esqueça", "não te esqueças",
    "não esqueças",
    "memorize", "anote que", "guarde que",
    "zapamiętaj", "pamiętaj, że", "pamiętaj że", "nie zapomnij", "zapisz sobie",
    "запомни", "запомните", "не забудь", "не забудьте", "не забывай", "имей в виду", "помни, что", "помни что",
    "unutma", "unutmayın", "hatırla ki", "aklında tut", "aklında bulunsun", "şunu unutma", "bunu unutma",
    "bunu not al", "şunu not al",
    "تذكر أن", "تذكري أن", "تذكر ان", "لا تنس", "لا تنسى", "لا تنسي", "احفظ أن", "احفظ هذا", "تذكر هذا",
)

_FORCE_ELSEWHERE = (
    *ORDERS_FIRST,
    "bitte merken", "kannst du dir merken", "tu peux retenir", "puedes recordar que", "puoi ricordare che",
    "kun je onthouden",
    "você pode lembrar que", "proszę zapamiętać", "bunu hatırla", "lütfen hatırla",
    "覚えておいて", "覚えといて", "覚えてください", "覚えてて", "忘れないで", "記憶して", "メモしておいて",
    "기억해 줘", "기억해줘", "기억해 주세요", "기억해주세요", "기억해 둬", "기억해둬",
    "잊지 마", "잊지마", "잊지 말아", "메모해 줘", "메모해줘",
    "จำไว้", "ช่วยจำ", "โปรดจำ", "อย่าลืม", "จดไว้",
)

FORCE_PHRASES = (
    "请记住", "帮我记住", "记一下", "记住", "请记得", "帮我记得", "记得", "别忘了", "别忘记", "不要忘了", "不要忘记",
    "請記住", "幫我記住", "記一下", "記住", "請記得", "幫我記得", "記得", "別忘了", "別忘記", "不要忘記",
    "remember that", "remember my", "please remember", "could you remember", "don't forget", "do not forget",
    *_FORCE_ELSEWHERE,
)

_SUMMARY_ELSEWHERE = (
    "fass den tag zusammen", "fasse den tag zusammen", "fass heute zusammen", "fasse heute zusammen",
    "fass unser gespräch von heute zusammen", "fasse unser gespräch von heute zusammen", "zusammenfassung von heute",
    "zusammenfassung des tages",
    "résume la journée", "résume notre conversation d'aujourd'hui", "un résumé de la journée",
    "un résumé d'aujourd'hui",
    "resume el día", "resume nuestra conversación de hoy", "un resumen del día", "un resumen de hoy",
    "riassumi la giornata", "riassumi la nostra conversazione di oggi", "un riassunto della giornata",
    "un riassunto di oggi",
    "vat de dag samen", "vat ons gesprek van vandaag samen", "een samenvatting van vandaag",
    "een samenvatting van de dag",
    "resuma o dia", "resume o dia", "resuma a nossa conversa de hoje", "resuma nossa conversa de hoje",
    "um resumo do dia",
    "um resumo de hoje",
    "podsumuj dzień", "podsumuj dzisiejszy dzień", "podsumuj naszą dzisiejszą rozmowę", "podsumowanie dnia",
    "подведи итоги дня", "подытожь день", "подытожь наш сегодняшний разговор", "сделай сводку за сегодня",
    "günü özetle", "bugünü özetle", "bugünkü konuşmamızı özetle", "günün özetini",
    "لخص اليوم", "لخص محادثتنا اليوم", "لخص حديثنا اليوم", "ملخص اليوم",
    "今日の会話をまとめて", "今日の会話を要約", "今日をまとめて", "今日一日をまとめて", "今日のまとめを",
    "오늘 대화를 요약", "오늘 대화 요약", "오늘 하루를 요약", "오늘을 요약", "오늘 대화를 정리",
    "สรุปวันนี้", "สรุปบทสนทนาวันนี้", "สรุปบทสนทนาของวันนี้", "สรุปการสนทนาวันนี้",
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
    *_SUMMARY_ELSEWHERE,
)
# fmt: on

#: Phrases in languages other than English and Chinese.
ELSEWHERE = frozenset((*_FORCE_ELSEWHERE, *_SUMMARY_ELSEWHERE))

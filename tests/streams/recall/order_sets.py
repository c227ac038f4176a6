"""Invented memories with a question about their order, of which the first one is to be found first.

The others were said in the order in which they stand here; `day` is when a memory was said.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class OrderSet(NamedTuple):
    """A question, and memories with the days on which they were said; the first one answers it."""

    question: str
    memories: tuple[tuple[str, str], ...]


ENGLISH: Final = (
    OrderSet(
        "When did I first visit Rome?",
        (
            ("2023-04-02", "I visited Rome with Anna, so many fountains"),
            ("2024-05-01", "I visited Rome for the museums"),
            ("2025-09-03", "I visited Rome, it was hot"),
        ),
    ),
    OrderSet(  # the year that it speaks of counts, not the day on which it was said
        "When did I first go to Lisbon?",
        (
            ("2024-06-10", "In 2019 I went to Lisbon with my class"),
            ("2023-05-04", "I went to Lisbon with my uncle Tom"),
            ("2025-05-04", "I went to Lisbon with my cousin"),
        ),
    ),
    OrderSet(
        "When was the last time I saw the dentist?",
        (
            ("2025-11-20", "I saw the dentist, she found nothing"),
            ("2024-11-20", "I saw the dentist about a tooth"),
            ("2025-02-11", "I saw the dentist, all good"),
        ),
    ),
    OrderSet(
        "Which novel did I most recently finish?",
        (
            ("2026-01-30", "I finished a novel about lighthouses"),
            ("2025-06-01", "I finished a novel about whales"),
            ("2025-09-01", "I finished a novel about bees"),
        ),
    ),
    OrderSet(
        "What is the latest offer for the boat?",
        (
            ("2026-02-03", "There is an offer of 4,000 for the boat"),
            ("2025-12-01", "There is an offer of 5,500 for the boat"),
            ("2026-01-05", "There is an offer of 4,800 for the boat"),
        ),
    ),
    OrderSet(
        "When did I last call my grandmother?",
        (
            ("2026-03-01", "I called my grandmother about the garden"),
            ("2025-12-24", "I called my grandmother for Christmas"),
            ("2026-01-17", "I called my grandmother, she was tired"),
        ),
    ),
    OrderSet(
        "Which did I buy first, the piano or the violin?",
        (
            ("2024-02-02", "I bought the violin from a neighbour"),
            ("2025-08-02", "I bought the piano from a school"),
        ),
    ),
    OrderSet(
        "What did we eat the first time we met Julia?",
        (
            ("2023-08-15", "We met Julia and ate pancakes"),
            ("2024-01-15", "We met Julia and ate noodles"),
            ("2024-10-15", "We met Julia and ate soup"),
        ),
    ),
    OrderSet(
        "What is my newest bike?",
        (
            ("2026-01-12", "My bike is a red Kona"),
            ("2023-01-12", "My bike is a blue Trek"),
        ),
    ),
    OrderSet(
        "Where did Tom and I first dance?",
        (
            ("2022-06-30", "Tom and I danced on the pier"),
            ("2023-06-30", "Tom and I danced in the kitchen"),
            ("2025-06-30", "Tom and I danced at the harbour"),
        ),
    ),
    OrderSet(
        "my most recent visit to the physiotherapist",
        (
            ("2026-02-20", "A visit to the physiotherapist, for my knee"),
            ("2025-03-20", "A visit to the physiotherapist, for my back"),
        ),
    ),
    OrderSet(  # it matches much better than the one that is earlier
        "When did I first ride a horse on the black beach in Iceland?",
        (
            ("2025-07-07", "I rode a horse on the black beach in Iceland"),
            ("2021-07-07", "I rode a bus to work"),
        ),
    ),
    OrderSet(
        "Which sport did I do before I moved to Oslo?",
        (
            ("2023-02-01", "The sport that I do is rowing"),
            ("2024-06-01", "I moved to Oslo"),
            ("2025-02-01", "The sport that I do is skiing"),
        ),
    ),
    OrderSet(
        "Which car did we drive after the wedding?",
        (
            ("2025-08-01", "The car that we drive is a Volvo"),
            ("2024-01-01", "The car that we drive is a Fiat"),
            ("2024-09-14", "It was a lovely wedding"),
        ),
    ),
    OrderSet(
        "Which choir have I sung in since I started my job at the library?",
        (
            ("2025-05-05", "I sing in a choir, by the river"),
            ("2023-05-05", "I sing in a choir, at church"),
            ("2024-05-05", "I started my job at the library"),
        ),
    ),
    OrderSet(
        "Which cake did I eat while I was in Berlin?",
        (
            ("2025-04-10", "I ate a cake with plums"),
            ("2025-01-10", "I ate a cake with nuts"),
            ("2025-04-10", "I was in Berlin today"),
            ("2025-06-10", "I ate a cake with cream"),
        ),
    ),
    OrderSet(
        "Before we got the dog, where did we go hiking?",
        (
            ("2023-03-03", "We go hiking in the valley"),
            ("2024-03-03", "We got the dog"),
            ("2025-03-03", "We go hiking by the lake"),
        ),
    ),
    OrderSet(  # the event took place in the year that its memory speaks of
        "Which club did I play chess in before my divorce?",
        (
            ("2019-02-01", "I play chess in the club of the harbour"),
            ("2023-02-01", "I play chess in the club of the mill"),
            ("2025-10-01", "My divorce was in 2021"),
        ),
    ),
    OrderSet(  # no memory tells of the event, so nothing is raised
        "What did I paint after the earthquake?",
        (
            ("2023-02-01", "I painted what I saw"),
            ("2025-02-01", "I bought a lamp for the hall"),
        ),
    ),
    OrderSet(
        "Which bread did I last bake before the wedding?",
        (
            ("2024-05-05", "I baked a bread with walnuts"),
            ("2023-05-05", "I baked a bread with seeds"),
            ("2024-09-14", "It was a lovely wedding"),
            ("2025-05-05", "I baked a bread with olives"),
        ),
    ),
)

CHINESE: Final = (
    OrderSet(
        "我第一次去北京是什么时候？",
        (
            ("2022-04-02", "我去北京旅游"),
            ("2024-05-01", "我去北京出差"),
            ("2025-09-03", "我去北京开会"),
        ),
    ),
    OrderSet(
        "我第一次去厦门是什么时候？",
        (
            ("2024-06-10", "2018年我去厦门看海"),
            ("2023-05-04", "我去厦门看朋友"),
            ("2025-05-04", "我去厦门看演出"),
        ),
    ),
    OrderSet(
        "我最近一次看牙医是什么时候？",
        (
            ("2026-01-20", "我看牙医，拔牙"),
            ("2024-11-20", "我看牙医，补牙"),
            ("2025-02-11", "我看牙医，洗牙"),
        ),
    ),
    OrderSet(
        "我上一次爬山是在哪里？",
        (
            ("2026-02-08", "我爬山，在香山"),
            ("2025-03-08", "我爬山，在黄山"),
            ("2025-08-08", "我爬山，在泰山"),
        ),
    ),
    OrderSet(
        "我最后一次抽烟是什么时候？",
        (
            ("2025-12-31", "我抽烟了，在阳台"),
            ("2025-03-08", "我抽烟了，在公司"),
            ("2025-08-08", "我抽烟了，在车站"),
        ),
    ),
    OrderSet(
        "房租最新的报价是多少？",
        (
            ("2026-02-03", "房租的报价是四千"),
            ("2025-12-01", "房租的报价是五千"),
            ("2026-01-05", "房租的报价是四千五"),
        ),
    ),
    OrderSet(
        "我最早是什么时候学钢琴的？",
        (
            ("2021-10-05", "我学钢琴，老师很好"),
            ("2023-12-01", "我学钢琴，老师很严"),
            ("2025-01-05", "我学钢琴，老师很忙"),
        ),
    ),
    OrderSet(
        "我上次给奶奶打电话说了什么？",
        (
            ("2026-03-01", "给奶奶打电话，说花园的事"),
            ("2025-12-24", "给奶奶打电话，说过冬的事"),
            ("2026-01-17", "给奶奶打电话，说买菜的事"),
        ),
    ),
    OrderSet(
        "我首次参加马拉松是在哪个城市？",
        (
            ("2022-10-05", "我参加马拉松，城市是无锡"),
            ("2023-12-01", "我参加马拉松，城市是广州"),
            ("2025-01-05", "我参加马拉松，城市是厦门"),
        ),
    ),
    OrderSet(
        "我们第一次见小美吃了什么？",
        (
            ("2023-08-15", "我们见小美，吃了火锅"),
            ("2024-01-15", "我们见小美，吃了面条"),
            ("2024-10-15", "我们见小美，吃了烤鸭"),
        ),
    ),
    OrderSet(
        "我最近一次理发花了多少钱？",
        (
            ("2026-03-05", "理发花了八十"),
            ("2025-06-05", "理发花了四十"),
        ),
    ),
    OrderSet(
        "我第一次在冰岛的黑沙滩骑马是什么时候？",
        (
            ("2025-07-07", "我在冰岛的黑沙滩骑马"),
            ("2021-07-07", "我坐公交车上班"),
        ),
    ),
    OrderSet(
        "搬家之前我喜欢什么运动？",
        (
            ("2023-02-01", "我喜欢的运动是游泳"),
            ("2024-06-01", "今天搬家"),
            ("2025-02-01", "我喜欢的运动是滑雪"),
        ),
    ),
    OrderSet(
        "结婚以后我们开什么车？",
        (
            ("2025-08-01", "我们开的车是沃尔沃"),
            ("2023-01-01", "我们开的车是菲亚特"),
            ("2024-09-14", "我们结婚了"),
        ),
    ),
    OrderSet(
        "毕业后我加入了哪个合唱团？",
        (
            ("2025-05-05", "我加入了合唱团，在江边"),
            ("2022-05-05", "我加入了合唱团，在学校"),
            ("2023-06-30", "我毕业了"),
        ),
    ),
    OrderSet(
        "我在柏林的时候吃了什么蛋糕？",
        (
            ("2025-04-10", "吃了李子蛋糕"),
            ("2025-01-10", "吃了核桃蛋糕"),
            ("2025-04-10", "我在柏林"),
            ("2025-06-10", "吃了奶油蛋糕"),
        ),
    ),
    OrderSet(
        "自从换工作以后我读了哪本小说？",
        (
            ("2025-03-03", "我读了小说，关于灯塔"),
            ("2023-03-03", "我读了小说，关于鲸鱼"),
            ("2024-03-03", "换工作了"),
        ),
    ),
    OrderSet(
        "离婚以前我在哪个俱乐部下棋？",
        (
            ("2019-02-01", "我在码头的俱乐部下棋"),
            ("2023-02-01", "我在磨坊的俱乐部下棋"),
            ("2025-10-01", "2021年我离婚了"),
        ),
    ),
    OrderSet(
        "地震之后我画了什么？",
        (
            ("2023-02-01", "我画了一只猫"),
            ("2025-02-01", "我买了一盏灯"),
        ),
    ),
    OrderSet(
        "婚礼之前我最后一次烤的面包是什么？",
        (
            ("2024-05-05", "我烤的面包有核桃"),
            ("2023-05-05", "我烤的面包有芝麻"),
            ("2024-09-14", "婚礼很美"),
            ("2025-05-05", "我烤的面包有橄榄"),
        ),
    ),
)

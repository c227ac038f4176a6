"""Finds sentences that tell a secret: passwords, codes, keys, and the numbers of cards and documents."""

from __future__ import annotations

import re
from typing import Final

_ENGLISH: Final = re.compile(
    r"\b(?:pass[ -]?(?:words?|codes?|phrases?|keys?)|passwd|pwd|pins?|logins?|credentials?|secrets?|tokens?|otp|ssn"
    r"|cvv|cvc|iban|social security|(?:seed|recovery|backup) (?:phrase|word|key|code)s?|mnemonics?"
    r"|(?:api|ssh|private|access|encryption|licen[cs]e|secret|product)[ -]?keys?"
    r"|(?:my|our) codes?(?! (?:review|base|style|editor))"
    r"|(?:door|gate|entry|entrance|access|alarm|lock|safe|security|verification|confirmation|recovery"
    r"|unlock|garage|building|bank|sort|activation|zip|auth|authentication|2fa|sms|one-time|wi-?fi|locker) codes?"
    r"|codes? (?:is|are|was|to|for|of)|(?:credit|debit|bank|visa) ?cards?"
    r"|(?:card|account|passport|insurance|licen[cs]e|routing|identity|id|tax|security|bank|visa)"
    r" ?(?:no\.?|numbers?|nr\.?|#))"
    r"(?!\w)|\bcodes?\W{1,3}\d|\bpassport\b[^.!?]{0,30}\d",
    re.IGNORECASE,
)
_CHINESE: Final = re.compile(
    "密码|口令|密钥|私钥|助记词|令牌|暗号|(?:验证|校验|动态|安全|解锁|支付|门禁|取件|激活|授权|识别)码|身份证|社保号|银行卡|信用卡"
    "|储蓄卡|卡号|[账帐][号户]|护照号|证件号|驾照号"
    "|密碼|驗證碼|金鑰|身分證|身份證|銀行卡|卡號|帳號|賬號|護照號"
)
_OTHER: Final = re.compile(
    r"passwor[dt]|kennwort|contraseña|mot de passe|\bsenha\b|пароль|パスワード|비밀번호", re.IGNORECASE
)
#: Numbers of cards and documents. Telephone numbers have fewer digits.
_LONG_NUMBER: Final = re.compile(r"\d(?:[ -]?\d){13}|护照[^，。]{0,6}\d")


def is_secret(sentence: str) -> bool:
    """Return whether a sentence may tell a secret.

    >>> is_secret("The gate code is 4711."), is_secret("我的银行卡在包里。"), is_secret("I love to write code.")
    (True, True, False)
    """
    return any(one.search(sentence) for one in (_ENGLISH, _CHINESE, _OTHER, _LONG_NUMBER))

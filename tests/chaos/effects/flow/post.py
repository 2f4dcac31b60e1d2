"""jobs.judged -> jobs.posted: a mail, once; its job says what happens when nobody knows."""

import asyncio
import os
import random
from email.message import EmailMessage
from urllib.parse import urlsplit

import aiosmtplib

from farandole import Agent, Context, Retry
from tests.chaos.effects.deadly import maybe_die
from tests.chaos.effects.flow.events import Judged, Posted

SERVER = urlsplit(os.environ["SMTP_URL"])
agent = Agent("post", concurrency=8, timeout="10s", attempts=8, backoff="50ms", brake=None)


@agent.handle
async def post(judged: Judged, ctx: Context) -> Posted:
    async def send(key: str) -> str:
        maybe_die("mail-before")
        await _send(judged, key)
        await asyncio.sleep(random.uniform(0, 0.05))  # between the call and its record: kills from outside hit it, too
        maybe_die("held-mail-after" if judged.hold else "mail-after")
        return f"<{key}@chaos>"

    message_id = await ctx.once("mail", send, if_unknown="hold" if judged.hold else "repeat")
    return Posted(number=judged.number, message_id=message_id)


async def _send(judged: Judged, key: str) -> None:
    mail = EmailMessage()
    mail["To"], mail["Subject"], mail["Message-ID"] = "you@chaos", str(judged.number), f"<{key}@chaos>"
    mail.set_content(judged.words)
    client = aiosmtplib.SMTP(hostname=SERVER.hostname, port=SERVER.port, timeout=5)
    try:
        await client.connect()
        await client.mail("me@chaos")
        await client.rcpt("you@chaos")
    except (aiosmtplib.SMTPException, OSError) as failure:
        raise Retry(str(failure)) from failure
    try:
        await client.data(mail.as_bytes())
    except aiosmtplib.SMTPResponseException as refused:
        raise Retry(str(refused)) from refused
    finally:
        client.close()

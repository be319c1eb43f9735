from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from prism_memory import tokens
from prism_memory.exceptions import ConfigurationError, EncodingUnavailable
from prism_memory.tokens import HeuristicCounter, TiktokenCounter, TokenCounter

URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
FILE_NAME = hashlib.sha1(URL.encode()).hexdigest()

# What the estimate may be off, as a share of the exact count, for texts of a paragraph.
LOWEST, HIGHEST = -0.10, 0.40

TEXTS = {
    "English": "My sister moved to Lisbon in March, so please send the invoices to her new "
    "address. She prefers to be called before noon, and she does not read e-mail at the weekend.",
    "German": "Meine Schwester ist im März nach Lissabon gezogen, bitte schicken Sie die "
    "Rechnungen an die neue Anschrift. Sie möchte lieber vormittags angerufen werden.",
    "French": "Ma sœur a déménagé à Lisbonne en mars, merci d'envoyer les factures à sa nouvelle "
    "adresse. Elle préfère qu'on l'appelle avant midi, jamais le week-end.",
    "Spanish": "Mi hermana se mudó a Lisboa en marzo, así que envíe las facturas a su nueva "
    "dirección. Prefiere que la llamen antes del mediodía y nunca los domingos.",
    "Polish": "Moja siostra przeprowadziła się w marcu do Lizbony, proszę wysyłać faktury na jej "
    "nowy adres. Woli, żeby dzwonić do niej przed południem.",
    "Turkish": "Kız kardeşim mart ayında Lizbon'a taşındı, lütfen faturaları yeni adresine "
    "gönderin. Öğleden önce aranmayı tercih ediyor.",
    "Vietnamese": "Chị tôi đã chuyển đến Lisbon vào tháng ba, vui lòng gửi hóa đơn đến địa chỉ mới "
    "của chị ấy. Chị thích được gọi điện vào buổi sáng.",
    "Russian": "Моя сестра в марте переехала в Лиссабон, поэтому, пожалуйста, присылайте счета на "
    "новый адрес. Она просит звонить до полудня, чтобы не мешать работе.",
    "Ukrainian": "Моя сестра в березні переїхала до Лісабона, тому надсилайте, будь ласка, рахунки "
    "на її нову адресу. Вона просить телефонувати до полудня.",
    "Greek": "Η αδερφή μου μετακόμισε στη Λισαβόνα τον Μάρτιο, γι' αυτό στείλτε τους "
    "λογαριασμούς στη νέα της διεύθυνση. Προτιμά να την καλείτε το πρωί.",
    "Arabic": "انتقلت أختي إلى لشبونة في شهر مارس، لذلك أرسلوا الفواتير إلى عنوانها الجديد من "
    "فضلكم. وهي تفضل أن تتصلوا بها قبل الظهر.",
    "Hebrew": "אחותי עברה לליסבון במרץ, אז בבקשה שלחו את החשבוניות לכתובת החדשה שלה. "
    "היא מעדיפה שיתקשרו אליה לפני הצהריים.",
    "Hindi": "मेरी बहन मार्च में लिस्बन चली गई, इसलिए कृपया बिल उसके नए पते पर भेजें। "
    "वह चाहती है कि उसे दोपहर से पहले फ़ोन किया जाए।",
    "Thai": "พี่สาวของฉันย้ายไปลิสบอนเมื่อเดือนมีนาคม กรุณาส่งใบแจ้งหนี้ไปยังที่อยู่ใหม่ของเธอ เธอสะดวกรับโทรศัพท์ก่อนเที่ยง",
    "Chinese": "我姐姐三月份搬到了里斯本，请把账单寄到她的新地址。"
    "她希望在中午之前接电话，周末不看电子邮件。",
    "Japanese": "姉は三月にリスボンへ引っ越したので、請求書は新しい住所に送ってください。"
    "電話は午前中にしてほしいそうです。",
    "Korean": "누나가 삼월에 리스본으로 이사했으니 청구서는 새 주소로 보내 주세요. "
    "전화는 오전에 받는 것을 더 좋아합니다.",
    "JSON": '{"id": 48213, "customer": {"name": "Ana Reis", "email": "ana@example.com"}, "lines": '
    '[{"sku": "A-100", "quantity": 3, "price": 12.5}, {"sku": "B-7", "quantity": 1, "cost": 9.0}]}',
    "Python": "def total(lines: list[Line], *, tax: float = 0.23) -> Decimal:\n"
    '    """Sum the lines, with tax."""\n'
    "    net = sum(line.price * line.quantity for line in lines)\n"
    "    if net < 0:\n"
    '        raise ValueError(f"negative total: {net}")\n'
    "    return round(net * (1 + tax), 2)\n",
    "emoji": "We won 🎉🎉! Thanks everyone 🙏❤️ see you at the party 🍕🎶 bring friends 👋😀",
}


@pytest.fixture
def fresh(monkeypatch):
    """As in a process that has not counted yet."""
    monkeypatch.setattr(tokens, "_encodings", {})


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("something reached for the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine on which no encoding can be found. Returns tiktoken's cache folder, empty."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    monkeypatch.setitem(sys.modules, "litellm", None)  # as if it were not installed
    return folder


def bundled() -> Path:
    folders = [folder / FILE_NAME for folder in tokens._folders()]
    return next(path for path in folders if path.exists())


def test_counts_as_the_encoding_does():
    assert TiktokenCounter().count("hello world") == 2
    assert TiktokenCounter().count("") == 0
    assert TiktokenCounter(encoding="o200k_base").count("नमस्ते") < TiktokenCounter(
        encoding="cl100k_base"
    ).count("नमस्ते")


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base", "p50k_base", "o200k_harmony"])
def test_finds_what_litellm_ships_without_network_environment_or_litellm(
    encoding, fresh, no_network, monkeypatch, tmp_path
):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))  # empty
    environment, registered = dict(os.environ), dict(tiktoken.registry.ENCODINGS)
    loader = tiktoken.load.read_file_cached
    assert TiktokenCounter(encoding=encoding).count("hello") == 1
    assert dict(os.environ) == environment
    assert registered == tiktoken.registry.ENCODINGS
    assert tiktoken.load.read_file_cached is loader
    assert openai_public.load_tiktoken_bpe is tiktoken.load.load_tiktoken_bpe
    assert list(tmp_path.iterdir()) == []


def test_neither_import_nor_construction_nor_counting_imports_what_is_heavy():
    code = (
        "import sys\n"
        "from prism_memory.tokens import TiktokenCounter, HeuristicCounter\n"
        "counter = TiktokenCounter(); HeuristicCounter().count('a')\n"
        "assert counter.check('X') == []\n"
        "assert not {'tiktoken', 'regex', 'numpy', 'litellm'} & set(sys.modules)\n"
        "assert counter.count('hello world') == 2\n"
        "assert 'litellm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)


def test_what_looks_special_is_ordinary_text():
    assert TiktokenCounter().count("<|endoftext|>") > 1
    assert TiktokenCounter().count("a <|endofprompt|> b") > 4


def test_lone_surrogates_count_as_replacement_characters():
    for counter in (TiktokenCounter(), HeuristicCounter()):
        assert counter.count("a \ud800 b") >= 3
    assert TiktokenCounter().count("x\udfff") == TiktokenCounter().count("x\ufffd")


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", "\n"])
def test_a_million_blanks_are_counted_and_not_too_few(blank):
    counter = TiktokenCounter()
    part = counter.count(blank * 100_000)
    for text in (blank * 1_200_000, "a" + blank * 1_200_000 + "b"):
        assert 12 * part - 12 <= counter.count(text) <= 12 * part + 12


def test_cuts_are_few_and_only_inside_long_blanks(monkeypatch):
    encoding = tiktoken_encoding()
    text = "one  two\n\n" + " " * 25 + "three" + "\t" * 9 + "x" * 50 + "\n"
    exact = len(encoding.encode_ordinary(text))
    monkeypatch.setattr(tokens, "LONGEST_BLANK", 27)
    assert TiktokenCounter().count(text) == exact
    monkeypatch.setattr(tokens, "LONGEST_BLANK", 10)
    assert exact < TiktokenCounter().count(text) <= exact + 8


@given(st.text(" \t\n\r\u3000ab1!", max_size=200), st.integers(1, 20))
def test_cuts_never_undercount(text, longest):
    exact = len(tiktoken_encoding().encode_ordinary(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "LONGEST_BLANK", longest)
        assert TiktokenCounter().count(text) >= exact


def test_what_a_cut_may_save_is_added(monkeypatch):
    encoding, text = tiktoken_encoding(), "\u3000  \u3000"
    halves = sum(len(encoding.encode_ordinary(half)) for half in (text[:2], text[2:]))
    assert halves < len(encoding.encode_ordinary(text))  # so it does happen
    monkeypatch.setattr(tokens, "LONGEST_BLANK", 2)
    assert TiktokenCounter().count(text) >= len(encoding.encode_ordinary(text))


def tiktoken_encoding():
    TiktokenCounter().count("")
    return tokens._encodings["o200k_base"]


@pytest.mark.parametrize("text", ["a" * 1_000_000, "中" * 300_000, "-" * 300_000, "ab1 " * 100_000])
def test_long_runs_are_counted(text):
    part = TiktokenCounter().count(text[:1000])
    assert TiktokenCounter().count(text) == pytest.approx(part * len(text) / 1000, rel=0.05)


def test_an_encoding_that_is_not_there_is_an_error_that_says_where_was_looked(
    fresh, nowhere, no_network
):
    counter = TiktokenCounter()
    with pytest.raises(EncodingUnavailable) as caught:
        counter.count("hello")
    message = str(caught.value)
    for part in ('PRISM_MEMORY["TOKEN_COUNTER"]', "o200k_base", str(nowhere), "data-gym-cache"):
        assert part in message
    assert "HeuristicCounter" in message
    assert "TIKTOKEN_CACHE_DIR" in message


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_finds_what_tiktoken_has_in_its_own_folders(
    variable, fresh, no_network, monkeypatch, tmp_path, request
):
    source = bundled()
    request.getfixturevalue("nowhere")
    shutil.copy(source, tmp_path / FILE_NAME)
    monkeypatch.setenv(variable, str(tmp_path))
    assert TiktokenCounter().count("hello world") == 2


def test_finds_what_tiktoken_downloaded_to_the_temporary_folder(
    fresh, no_network, tmp_path, request
):
    source = bundled()
    request.getfixturevalue("nowhere")
    (tmp_path / "tmp" / "data-gym-cache").mkdir(parents=True)
    shutil.copy(source, tmp_path / "tmp" / "data-gym-cache" / FILE_NAME)
    assert TiktokenCounter().count("hello world") == 2


def test_a_damaged_file_is_named_and_left_alone(fresh, nowhere, no_network):
    damaged = nowhere / FILE_NAME
    damaged.write_bytes(b"aGVsbG8= 0\n")
    for attempt in range(2):
        with pytest.raises(EncodingUnavailable, match="hash is wrong"):
            TiktokenCounter().count("hello")
        assert damaged.exists(), attempt


def test_a_damaged_file_does_not_hide_a_good_one(fresh, no_network, monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    (tmp_path / FILE_NAME).write_bytes(b"")
    assert TiktokenCounter().count("hello world") == 2


def test_a_tiktoken_that_reads_otherwise_is_refused(fresh, no_network, monkeypatch):
    copy = tokens._copy

    def without_reader(name):
        module = copy(name)
        vars(module).pop("read_file_cached", None)
        return module

    monkeypatch.setattr(tokens, "_copy", without_reader)
    with pytest.raises(EncodingUnavailable, match="version of tiktoken"):
        TiktokenCounter().count("hello")


def test_without_tiktoken_the_error_says_so(fresh, monkeypatch):
    for name in ("tiktoken", "tiktoken.load"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EncodingUnavailable, match="Install tiktoken"):
        TiktokenCounter().count("hello")


def test_an_unknown_encoding_is_an_error_that_lists_the_known(no_network):
    counter = TiktokenCounter(encoding="o2ook_base")
    with pytest.raises(
        ConfigurationError, match=r"'o2ook_base'.*cl100k_base.*o200k_base"
    ) as caught:
        counter.count("hello")
    assert not isinstance(caught.value, EncodingUnavailable)


def test_options_of_another_type_are_refused():
    with pytest.raises(ConfigurationError, match="encoding 7"):
        TiktokenCounter(encoding=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        TiktokenCounter("o200k_base")  # type: ignore[misc]


def test_is_loaded_once_by_however_many_threads(fresh, monkeypatch):
    loads, parts = [], tokens._parts
    monkeypatch.setattr(tokens, "_parts", lambda *args: loads.append(args) or parts(*args))
    start, counted = threading.Barrier(8), []

    def count():
        start.wait()
        counted.append(TiktokenCounter().count("hello world"))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [2] * 8
    assert len(loads) == 1


def test_a_counter_of_ones_own_needs_count_only():
    class Words(TokenCounter):
        def count(self, text: str) -> int:
            return len(text.split())

    assert Words().count("a b") == 2
    assert Words().check("X") == []
    assert HeuristicCounter().check("X") == []
    with pytest.raises(NotImplementedError):
        TokenCounter().count("a")


@pytest.mark.parametrize("kind", TEXTS)
def test_the_estimate_is_within_its_stated_error(kind):
    exact = TiktokenCounter().count(TEXTS[kind])
    error = HeuristicCounter().count(TEXTS[kind]) / exact - 1
    assert LOWEST <= error <= HIGHEST


def test_the_estimate_of_mixed_text_is_close():
    text = "\n".join(TEXTS.values())
    exact = TiktokenCounter().count(text)
    assert 0 <= HeuristicCounter().count(text) / exact - 1 <= 0.2


@given(st.text())
def test_every_text_has_an_estimate(text):
    estimate = HeuristicCounter().count(text)
    assert estimate >= (1 if text else 0)
    assert HeuristicCounter().count(text + "\nmore") >= estimate


def test_the_estimate_of_long_runs_does_not_hang():
    for text in (
        " " * 1_000_000,
        "a" * 1_000_000,
        "!" * 1_000_000,
        "\n" * 1_000_000,
        "中" * 300_000,
    ):
        assert HeuristicCounter().count(text) > 1

"""Tests of the command `translate`."""

import os
import random
import stat
import sys
import threading

import pytest

from t2t_repro.translation import build
from tests import run_command, tiny
from tests.sixteen_bits import needs

pytestmark = pytest.mark.medium

TEXT = "one two\n\nthree\r\n  \nfour\u2028five\nno line end"
SENTENCES = ["one.", "Two!", "Three four?", "Five."]


def translate(trained, *arguments, stdin=b""):
    flags = ("--model_dir", str(trained.model_dir), *arguments)
    return run_command.run("translate", *flags, stdin=stdin)


def random_words(generator):
    numbers = generator.choices(tiny.NUMBERS, k=generator.randint(1, 6))
    return [english for english, _ in numbers]


def random_lines():
    generator = random.Random(1)
    return [" ".join(random_words(generator)) for _ in range(20)]


@pytest.fixture(scope="module")
def translations(trained):
    """Returns the translations of random lines, of `SENTENCES` and of `TEXT`.

    They are made with standard input and output.
    """
    lines = [*random_lines(), *SENTENCES, TEXT]
    result = translate(trained, stdin="\n".join(lines).encode())
    assert (result.status, result.err) == (0, "")
    lines = result.out.split("\n")
    assert lines.pop() == ""
    assert len(lines) == 20 + len(SENTENCES) + 6
    return lines


@pytest.fixture(scope="module")
def expected(translations):
    """Returns the translations of `TEXT`."""
    return translations[-6:]


@pytest.fixture(scope="module")
def nbest(trained):
    """Returns the two best translations of each line of `TEXT`."""
    return words(trained, "--nbest", "2")


def test_every_line_gives_a_line_and_blank_lines_stay_empty(expected):
    assert [bool(line) for line in expected] == [True, False, True, False, True, True]


def test_files_and_streams_give_the_same_translations_after_scores(
    trained, expected, tmp_path
):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes(TEXT.encode())
    files = ("--input_file", str(source), "--output_file", str(target))
    assert translate(trained, *files, "--scores", "--batch_size", "1") == (0, "", "")
    lines = target.read_bytes().decode().split("\n")
    assert lines.pop() == ""
    rows = [line.split("\t", 1) for line in lines]
    assert [text for _, text in rows] == expected
    assert [float(score) < 0 for score, _ in rows] == [bool(text) for text in expected]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_nbest_lists_begin_with_the_best_translation(nbest, expected):
    lists = {}
    for line in nbest:
        number, text, features, score = line.split(" ||| ")
        assert features.startswith("LogProb= ")
        log_prob, score = float(features.removeprefix("LogProb= ")), float(score)
        # The length penalty is at least 1.
        assert log_prob <= score <= 0
        lists.setdefault(int(number), []).append((score, text))
    assert list(lists) == list(range(len(expected)))
    assert [translations[0][1] for translations in lists.values()] == expected
    assert {len(translations) for translations in lists.values()} == {1, 2}
    for translations in lists.values():
        assert [score for score, _ in translations] == sorted(
            (score for score, _ in translations), reverse=True
        )


def test_rejects_nbest_above_the_beam_size(trained, tmp_path):
    target = tmp_path / "out.de"
    result = translate(trained, "--nbest", "3", "--output_file", str(target))
    assert run_command.is_one_clear_line(result)
    assert "--nbest 3 exceeds the beam size 2; give --beam_size 3" in result.err
    assert not target.exists()


def words(trained, *flags, text=TEXT):
    """Returns the translations of the lines of a text."""
    result = translate(trained, *flags, stdin=text.encode())
    assert (result.status, result.err) == (0, "")
    return result.out.removesuffix("\n").split("\n")


def test_checkpoints_and_models_translate_as_an_ensemble(trained, expected):
    both = f"averaged,{trained.model_dir}"
    scores = [
        words(trained, "--scores", "--checkpoint", names)
        for names in (both, "latest", "averaged,latest")
    ]
    assert [line.partition("\t")[2] for line in scores[0]] == expected
    assert len({tuple(each) for each in scores}) == 3


def test_translations_begin_with_their_prefixes(trained, expected, tmp_path):
    prefixes = tmp_path / "prefixes.de"
    prefixes.write_text("zehn\nzehn\n\n\n\nzehn zehn\n")
    translations = words(trained, "--prefix_file", str(prefixes))
    assert translations[0].startswith("zehn")
    assert translations[1] == ""
    assert translations[2:5] == expected[2:5]
    assert translations[5].startswith("zehn zehn")
    source = tmp_path / "in.en"
    source.write_bytes(TEXT.encode() + b"\nseven")
    result = translate(
        trained, "--prefix_file", str(prefixes), "--input_file", str(source)
    )
    assert run_command.is_one_clear_line(result)
    assert f"{prefixes} has 6 lines, --input_file {source} has 7;" in result.err


def lengths(nbest):
    """Returns the number of subwords of the best translation of each line, by text.

    It follows from log probability and score by equation 14 of Wu et al. (2016).
    """
    counts, numbers = {}, set()
    for line in nbest:
        number, text, features, score = line.split(" ||| ")
        if text and number not in numbers:
            penalty = float(features.removeprefix("LogProb= ")) / float(score)
            counts[text] = round(6 * penalty ** (1 / 0.6) - 5)
        numbers.add(number)
    return counts


def test_min_length_extra_length_and_no_repeat_ngram_are_respected(trained, nbest):
    """The tiny model repeats itself if it cannot end a translation early."""
    free = lengths(nbest).values()
    flags = ("--nbest", "1", "--min_length", "20", "--extra_length", "30")
    long = lengths(words(trained, *flags))
    assert min(long.values()) >= 20
    assert min(free) < 9
    assert long.keys() != lengths(words(trained, *flags, "--no_repeat_ngram", "1"))
    short = lengths(words(trained, "--nbest", "1", "--extra_length", "0")).values()
    assert max(short) < max(free)


def test_samples_are_the_same_for_the_same_seed_and_line(trained, expected):
    flags = ("--sampling", "--top_p", "0.95", "--temperature", "2")
    translations = words(trained, *flags)
    assert translations == words(trained, *flags, "--batch_size", "1")
    assert translations != words(trained, *flags, "--seed", "1")
    blank = [not line.strip() for line in TEXT.split("\n")]
    assert [not line for line in translations] == blank
    # Each of three samples from the most probable token is that of greedy search.
    lists = words(trained, "--sampling", "--top_k", "1", "--nbest", "3")
    greedy = words(trained, "--beam_size", "1")
    for number, text in enumerate(greedy):
        texts = [each.split(" ||| ")[1] for each in lists if int(each[0]) == number]
        assert texts == [text] * (3 if text else 1)


@pytest.mark.medium
def test_xla_gives_the_same_translations(trained, expected):
    assert words(trained, "--xla", "--batch_size", "1") == expected


def test_alignments_follow_the_translations(trained, expected):
    translations = words(trained, "--alignment")
    sources = TEXT.split("\n")
    for line, translation, source in zip(translations, expected, sources, strict=True):
        text, _, pairs = line.rpartition(" ||| ")
        assert text == translation
        for pair in pairs.split():
            i, j = map(int, pair.split("-"))
            assert i < len(source.split())
            assert j < len(text.split())
        assert bool(pairs) == bool(text)


def test_hypotheses_of_an_n_best_list_are_aligned_as_in_moses(trained):
    """The alignment is the last field, as with -print-alignment-info-in-n-best."""
    flags = ("--nbest", "2")
    plain, aligned = (words(trained, *flags, *more) for more in ((), ("--alignment",)))
    assert [line.rpartition(" ||| ")[0] for line in aligned] == plain
    best = [line for line in aligned if line.partition(" ")[0] not in ("1", "3")]
    single = words(trained, "--alignment")
    for line in best:
        number, text, *_, pairs = line.split(" ||| ")
        if single[int(number)].startswith(f"{text} ||| "):
            assert single[int(number)] == f"{text} ||| {pairs}"


@pytest.mark.medium
@needs("bfloat16")
def test_many_batches_of_one_line_are_compiled_by_default(
    trained, tmp_path, monkeypatch
):
    monkeypatch.setitem(build.LINES_THAT_PAY, "float32", 6)
    text, absent = tmp_path / "many.en", tmp_path / "absent" / "out.de"
    text.write_text("one two\nthree\ntwo\n" * 2)

    def messages(*flags):
        """Returns the messages before the command fails to open the output file."""
        files = ("--input_file", str(text), "--output_file", str(absent))
        result = translate(trained, *files, "--batch_size", "1", *flags)
        *lines, error = result.err.splitlines()
        assert error.startswith("error: ")
        return lines

    message = "compiling the search for 6 lines in batches of one"
    assert [line.partition(" (")[0] for line in messages()] == [message]
    for flags in (
        *(("--no-xla",), ("--sampling",), ("--batch_size", "32")),
        ("--precision", "bfloat16"),
    ):
        assert messages(*flags) == []
    text.write_text("one two\nthree\ntwo\n" + "one\n" * 2)
    assert messages() == []


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--sampling", "--beam_size", "2"], "--sampling and --beam_size cannot"),
        (["--top_p", "0.5"], "--top_p needs --sampling"),
        (["--sampling", "--top_p", "1.5"], "above 0 and at most 1, not '1.5'"),
        (["--sampling", "--temperature", "0"], "from 0.001 to 1000, not '0'"),
        (["--alignment", "--split_sentences"], "--split_sentences and --alignment"),
        (["--alignment_layer", "0"], "--alignment_layer needs --alignment"),
        (["--alignment", "--alignment_layer", "7"], "decoder layer 7 does not exist"),
        (["--tensor2tensor_rules", "--min_length", "2"], "cannot be combined"),
        (["--xla", "--prefix_file", "in.de"], "--xla and --prefix_file cannot"),
        (["--prefix_file", "-"], "are both standard input"),
        (["--prefix_file", "nowhere.de"], "nowhere.de"),
        (["--checkpoint", "averaged,nowhere"], "checkpoint nowhere: no such folder"),
    ],
)
def test_rejects_flags_that_cannot_be_combined(trained, flags, expected):
    result = translate(trained, *flags, stdin=b"one\n")
    assert run_command.is_one_clear_line(result)
    assert expected in result.err


def test_a_translation_depends_only_on_its_line(trained, translations):
    lines = random_lines()
    before = dict(zip(lines, translations, strict=False))
    assert len(set(before.values())) > 5
    random.Random(2).shuffle(lines)
    flags = ("--batch_size", "3", "--window", "5")
    after = words(trained, *flags, text="".join(f"{line}\n" for line in lines))
    assert dict(zip(lines, after, strict=True)) == before


def test_an_empty_stream_gives_no_output(trained):
    assert translate(trained) == (0, "", "")


def test_an_empty_file_gives_an_empty_file(trained, tmp_path):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.touch()
    result = translate(
        trained, "--input_file", str(source), "--output_file", str(target)
    )
    assert result == (0, "", "")
    assert target.read_bytes() == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_the_input_file_is_not_overwritten(trained, tmp_path):
    source, link = tmp_path / "in.en", tmp_path / "link"
    source.write_text("one\n")
    link.symlink_to(source)
    result = translate(trained, "--input_file", str(source), "--output_file", str(link))
    assert run_command.is_one_clear_line(result)
    assert "is the input file; name another file" in result.err
    assert source.read_text() == "one\n"


def test_invalid_utf8_is_an_error_with_line_and_byte(trained, tmp_path):
    result = translate(trained, stdin=b"one\ntw\xff\n")
    assert run_command.is_one_clear_line(result)
    assert "standard input:2:3: byte 0xff is not valid UTF-8" in result.err
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes(b"one\ntw\xff\n")
    target.write_text("old", encoding="utf-8")
    result = translate(
        trained, "--input_file", str(source), "--output_file", str(target)
    )
    assert run_command.is_one_clear_line(result)
    assert f"{source}:2:3: byte 0xff" in result.err
    assert target.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_cuts_or_divides_and_counts_long_lines(trained):
    text = "one two " * 200 + "\none\n"
    flags = ("--beam_size", "1", "--extra_length", "0")
    result = translate(trained, *flags, stdin=text.encode())
    lines = "512 subwords, EOS included: 1 of 2 lines (number 1)\n"
    assert result.err == f"divided, because longer than {lines}"
    assert (result.status, result.out.count("\n")) == (0, 2)
    result = translate(trained, *flags, "--nbest", "1", stdin=text.encode())
    assert result.err == f"cut to {lines}"
    assert (result.status, result.out.count("\n")) == (0, 2)


def test_translates_the_sentences_of_a_line(trained, translations):
    line = " {} <x. Y>! {}\t{}\u2028{} \n\n"
    flags = ("--split_sentences", "--placeholders", "<.*?>")
    result = translate(trained, *flags, stdin=line.format(*SENTENCES).encode())
    assert (result.status, result.err) == (0, "")
    assert result.out == line.format(*translations[20:24])


def test_writes_to_a_named_pipe(trained, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    # A blank line needs no search.
    result = translate(trained, "--output_file", str(pipe), stdin=b" \n")
    reader.join(timeout=10)
    assert result.status == 0
    assert read == [b"\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_a_one_line_error(trained):
    result = translate(trained, "--output_file", "/dev/full", stdin=b" \n")
    assert run_command.is_one_clear_line(result)
    assert "cannot write /dev/full: No space left on device" in result.err


def test_translates_line_by_line_on_a_terminal_without_messages(trained, expected):
    master, slave = os.openpty()
    flags = ("--model_dir", str(trained.model_dir))
    # This process imports TensorFlow, which logs messages.
    process = run_command.start("translate", *flags, python=sys.executable, stdin=slave)
    os.close(slave)
    answers = []
    for line in (b"one two\n", b"\n", b"three\n"):
        os.write(master, line)
        answers.append(process.stdout.readline().removesuffix("\n"))
    os.write(master, b"\x04")  # Ctrl-D ends the input.
    out, err = process.communicate()
    os.close(master)
    assert (process.returncode, out, err) == (0, "", "")
    assert answers == expected[:3]


def test_placeholders_are_kept(trained, expected):
    text = "one two\n\nthree {0}\n%s\n<b>four\u2028five</b>\nno %s line end"
    flags = ("--placeholders", "all", "--unknown", "forbid")
    lines = words(trained, *flags, text=text)
    assert lines[:4] == [*expected[:2], f"{expected[2]} {{0}}", "%s"]
    assert lines[4] == f"<b>{expected[4]}</b>"
    assert "".join(lines[5].split()).replace("%s", "") == "".join(expected[5].split())
    nbest = words(trained, *flags, "--nbest", "2", text=text)
    assert all("{0}" in line for line in nbest if line.startswith("2 |||"))

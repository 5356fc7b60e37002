"""The command `translate`: a line out for every line in."""

import os
import random
import stat
import threading

import pytest

from tests import run_command, tiny
from tests.sixteen_bits import needs

pytestmark = pytest.mark.medium

TEXT = "one two\n\nthree\r\n  \nfour\u2028five\nno line end"


def translate(trained, *arguments, stdin=b""):
    flags = ("--model_dir", str(trained.model_dir), *arguments)
    return run_command.run("translate", *flags, stdin=stdin)


@pytest.fixture(scope="module")
def expected(trained):
    """The translations, by way of standard input and output."""
    done = translate(trained, stdin=TEXT.encode())
    assert (done.status, done.err) == (0, "")
    lines = done.out.split("\n")
    assert lines.pop() == ""
    return lines


def test_there_is_a_line_for_every_line_and_blank_ones_stay_empty(expected):
    assert len(expected) == 6
    assert [bool(line) for line in expected] == [True, False, True, False, True, True]


def test_files_give_what_streams_give(trained, expected, tmp_path):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes(TEXT.encode())
    done = translate(trained, "--input_file", str(source), "--output_file", str(target))
    assert done == (0, "", "")
    assert target.read_bytes().decode() == "".join(f"{line}\n" for line in expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_scores_stand_before_a_tab(trained, expected):
    done = translate(trained, "--scores", "--batch_size", "1", stdin=TEXT.encode())
    rows = [line.split("\t", 1) for line in done.out.split("\n")[:-1]]
    assert [text for _, text in rows] == expected
    assert [float(score) < 0 for score, _ in rows] == [bool(text) for text in expected]


def test_n_best_lists_begin_with_the_best(trained, expected):
    done = translate(trained, "--nbest", "2", stdin=TEXT.encode())
    assert (done.status, done.err) == (0, "")
    lists = {}
    for line in done.out.removesuffix("\n").split("\n"):
        number, text, features, score = line.split(" ||| ")
        assert features.startswith("LogProb= ")
        log_prob, score = float(features.removeprefix("LogProb= ")), float(score)
        # A penalty is at least 1.
        assert log_prob <= score <= 0
        lists.setdefault(int(number), []).append((score, text))
    assert list(lists) == list(range(len(expected)))
    assert [found[0][1] for found in lists.values()] == expected
    assert {len(found) for found in lists.values()} == {1, 2}
    for found in lists.values():
        assert [score for score, _ in found] == sorted(
            (score for score, _ in found), reverse=True
        )


def test_more_hypotheses_than_the_beam_holds_are_refused(trained, tmp_path):
    target = tmp_path / "out.de"
    done = translate(trained, "--nbest", "3", "--output_file", str(target))
    assert run_command.is_one_clear_line(done)
    assert "--nbest 3 exceeds the beam size 2; give --beam_size 3" in done.err
    assert not target.exists()


def words(trained, *flags, text=TEXT):
    """The translations of a text, one a line."""
    done = translate(trained, *flags, stdin=text.encode())
    assert (done.status, done.err) == (0, "")
    return done.out.removesuffix("\n").split("\n")


def test_checkpoints_and_models_translate_as_one(trained, expected):
    directory = str(trained.model_dir)
    assert words(trained, "--checkpoint", f"averaged,{directory}") == expected
    scores = [
        words(trained, "--scores", "--checkpoint", names)
        for names in ("averaged", "latest", "averaged,latest")
    ]
    assert len({tuple(each) for each in scores}) == 3


def test_translations_begin_with_their_prefixes(trained, expected, tmp_path):
    prefixes = tmp_path / "prefixes.de"
    prefixes.write_text("zehn\nzehn\n\n\n\nzehn zehn\n")
    found = words(trained, "--prefix_file", str(prefixes))
    assert found[0].startswith("zehn")
    assert found[1] == ""
    assert found[2:5] == expected[2:5]
    assert found[5].startswith("zehn zehn")
    source = tmp_path / "in.en"
    source.write_bytes(TEXT.encode() + b"\nseven")
    done = translate(
        trained, "--prefix_file", str(prefixes), "--input_file", str(source)
    )
    assert run_command.is_one_clear_line(done)
    assert f"{prefixes} has 6 lines, --input_file {source} has 7;" in done.err


def lengths(trained, *flags):
    """Subwords of each translation, from its two scores (Wu et al. 2016, eq. 14)."""
    found = {}
    for line in words(trained, "--nbest", "1", *flags):
        number, text, features, score = line.split(" ||| ")
        if text:  # Blank lines stay blank.
            penalty = float(features.removeprefix("LogProb= ")) / float(score)
            found[int(number)] = round(6 * penalty ** (1 / 0.6) - 5)
    return list(found.values())


def test_lengths_are_as_asked(trained):
    free = lengths(trained)
    assert min(lengths(trained, "--min_length", "9", "--extra_length", "9")) >= 9
    assert min(free) < 9
    assert max(lengths(trained, "--extra_length", "0")) < max(free)


def test_repetitions_are_left_out_if_so_asked(trained):
    """The tiny model repeats itself when it must go on."""
    flags = ("--min_length", "20", "--extra_length", "30")
    assert words(trained, *flags) != words(trained, *flags, "--no_repeat_ngram", "1")


def test_samples_are_the_same_for_the_same_seed_and_line(trained, expected):
    flags = ("--sampling", "--top_p", "0.95", "--temperature", "2")
    found = words(trained, *flags)
    assert found == words(trained, *flags, "--batch_size", "1")
    assert found != words(trained, *flags, "--seed", "1")
    blank = [not line.strip() for line in TEXT.split("\n")]
    assert [not line for line in found] == blank
    # The most probable symbol at each step is greedy search.
    greedy = words(trained, "--beam_size", "1")
    assert words(trained, "--sampling", "--top_k", "1") == greedy
    lists = words(trained, "--sampling", "--nbest", "3")
    assert [line.split(" ||| ")[0] for line in lists if line[0] == "0"] == ["0"] * 3


@pytest.mark.medium
def test_sentences_alone_can_be_compiled(trained, expected):
    assert words(trained, "--xla", "--batch_size", "1") == expected


def test_words_are_aligned_behind_their_translation(trained, expected):
    found = words(trained, "--alignment")
    for line, alone, source in zip(found, expected, TEXT.split("\n"), strict=True):
        text, _, pairs = line.rpartition(" ||| ")
        assert text == alone
        for pair in pairs.split():
            i, j = map(int, pair.split("-"))
            assert i < len(source.split())
            assert j < len(text.split())
        assert bool(pairs) == bool(text)


@pytest.mark.medium
@needs("bfloat16")
def test_many_lines_one_at_a_time_are_compiled_by_themselves(trained, tmp_path):
    lines = "".join(f"{line}\n" for line in ["one two", "three", "two"] * 667)
    text = tmp_path / "many.en"
    text.write_text(lines)
    one_by_one = ("--input_file", str(text), "--batch_size", "1")
    found = translate(trained, *one_by_one)
    plain = translate(trained, *one_by_one, "--no-xla")
    message = "compiling the search for 2,001 lines in batches of one"
    assert message in found.err
    assert "compiling" not in plain.err
    assert found.out == plain.out
    for flags in (("--sampling",), ("--batch_size", "32"), ("--precision", "bfloat16")):
        assert "compiling" not in translate(trained, *one_by_one, *flags).err


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--sampling", "--beam_size", "2"], "--sampling and --beam_size cannot"),
        (["--top_p", "0.5"], "--top_p needs --sampling"),
        (["--sampling", "--top_p", "1.5"], "above 0 and at most 1, not '1.5'"),
        (["--sampling", "--temperature", "0"], "from 0.001 to 1000, not '0'"),
        (["--alignment", "--nbest", "2"], "--alignment and --nbest cannot"),
        (["--alignment_layer", "0"], "--alignment_layer needs --alignment"),
        (["--alignment", "--alignment_layer", "7"], "decoder layer 7 does not exist"),
        (["--tensor2tensor_rules", "--min_length", "2"], "cannot be combined"),
        (["--xla", "--prefix_file", "in.de"], "--xla and --prefix_file cannot"),
        (["--prefix_file", "-"], "are both standard input"),
        (["--prefix_file", "nowhere.de"], "nowhere.de"),
        (["--checkpoint", "averaged,nowhere"], "--checkpoint nowhere: no such folder"),
    ],
)
def test_flags_that_make_no_sense_are_refused(trained, flags, expected):
    done = translate(trained, *flags, stdin=b"one\n")
    assert run_command.is_one_clear_line(done)
    assert expected in done.err


def test_a_translation_depends_on_its_line_alone(trained):
    generator = random.Random(1)
    lines = [" ".join(random_words(generator)) for _ in range(40)]

    def translated(text, *flags):
        stdin = "".join(f"{line}\n" for line in text).encode()
        out = translate(trained, *flags, stdin=stdin).out
        found = out.removesuffix("\n").split("\n")
        return dict(zip(text, found, strict=True))

    found = translated(lines, "--batch_size", "32")
    assert len(set(found.values())) > 5
    for batch_size, window in ((1, 40), (7, 5)):
        generator.shuffle(lines)
        flags = ("--batch_size", str(batch_size), "--window", str(window))
        assert translated(lines, *flags) == found


def random_words(generator):
    numbers = generator.choices(tiny.NUMBERS, k=generator.randint(1, 6))
    return [english for english, _ in numbers]


def test_an_empty_stream_gives_nothing(trained):
    assert translate(trained) == (0, "", "")


def test_an_empty_file_gives_an_empty_file(trained, tmp_path):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.touch()
    done = translate(trained, "--input_file", str(source), "--output_file", str(target))
    assert done == (0, "", "")
    assert target.read_bytes() == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_the_input_is_not_replaced(trained, tmp_path):
    source, link = tmp_path / "in.en", tmp_path / "link"
    source.write_text("one\n")
    link.symlink_to(source)
    done = translate(trained, "--input_file", str(source), "--output_file", str(link))
    assert run_command.is_one_clear_line(done)
    assert "is the input file; name another file" in done.err
    assert source.read_text() == "one\n"


def test_invalid_utf8_is_named_by_line_and_byte_and_nothing_is_written(
    trained, tmp_path
):
    done = translate(trained, stdin=b"one\ntw\xff\n")
    assert run_command.is_one_clear_line(done)
    assert "standard input:2:3: byte 0xff is not valid UTF-8" in done.err
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes(b"one\ntw\xff\n")
    target.write_text("old", encoding="utf-8")
    done = translate(trained, "--input_file", str(source), "--output_file", str(target))
    assert run_command.is_one_clear_line(done)
    assert f"{source}:2:3: byte 0xff" in done.err
    assert target.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_lines_that_are_too_long_are_cut_and_counted(trained):
    text = "one two " * 200 + "\none\n"
    done = translate(trained, "--beam_size", "1", stdin=text.encode())
    assert (done.status, done.out.count("\n")) == (0, 2)
    assert done.err == "cut to 512 subwords, EOS included: 1 of 2 lines (number 1)\n"


def test_a_device_or_a_pipe_is_written_to_and_stays_what_it_is(trained, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    done = translate(trained, "--output_file", str(pipe), stdin=b"one\n")
    reader.join(timeout=10)
    assert done.status == 0
    assert read[0].endswith(b"\n")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_one_clear_line(trained):
    done = translate(trained, "--output_file", "/dev/full", stdin=b"one\n")
    assert run_command.is_one_clear_line(done)
    assert "cannot write /dev/full: No space left on device" in done.err


def test_a_process_of_its_own_prints_translations_alone(trained, expected):
    model_dir = str(trained.model_dir)
    done = run_command.run_alone("translate", "--model_dir", model_dir, input=TEXT)
    assert (done.status, done.err) == (0, "")
    assert done.out.split("\n")[:-1] == expected


def test_a_terminal_is_answered_line_by_line(trained, expected):
    master, slave = os.openpty()
    flags = ("--model_dir", str(trained.model_dir))
    process = run_command.start("translate", *flags, stdin=slave)
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

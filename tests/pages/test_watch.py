"""`idarts watch`: who gets an answer, and what happens to a run that changes, ends or breaks while it is watched."""

import json
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest
from report_runs import config, metrics, write_run
from watching import until, watching

ROUNDS = metrics(rounds=60)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """One server for all tests; each makes its own runs in the folder that it watches."""
    root = tmp_path_factory.mktemp("runs")
    write_run(root / "first")
    with watching(root) as made:
        yield SimpleNamespace(root=root, watch=made)


def append(folder, lines):
    with (folder / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def started(folder, lines, settings=None):
    """A run in progress, whose process is this one."""
    folder.mkdir(exist_ok=True)
    (folder / ".lock").write_text(str(os.getpid()))
    (folder / "config.json").write_text(json.dumps(settings or config()))
    append(folder, lines)
    return folder


def says(here, name, *words):
    """Wait until the card of a run says all of these."""
    return until(lambda: all(word in here.watch.facts(name) for word in words))


def test_without_the_token_nothing_is_served(here):
    token = here.watch.path.strip("/")
    for path in ("/", "/news", "/1/", f"/{token[:-1]}/", f"/{token[:-1]}!/", f"/{'a' * len(token)}/", f"/x/{token}/"):
        answer, content = here.watch.ask(whole=path)
        assert (path, answer.status) == (path, 403)
        assert b"printed" in content
    assert here.watch.ask()[0].status == 200
    assert len(token) >= 43  # 256 bits


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}"])
def test_another_name_for_this_machine_is_refused(here, host):
    assert here.watch.ask(Host=host.format(port=here.watch.port))[0].status == 403
    assert here.watch.ask(Host=f"localhost:{here.watch.port}")[0].status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_requests_of_other_sites_are_refused(here, origin):
    assert here.watch.ask("news", Origin=origin.format(port=here.watch.port))[0].status == 403
    assert here.watch.ask("news", Origin=f"http://127.0.0.1:{here.watch.port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_is_read_only(here, method):
    answer, _ = here.watch.ask(method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    answer, content = here.watch.ask(method="HEAD")
    assert (answer.status, content) == (200, b"")


@pytest.mark.parametrize(
    "path", ["../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "1/config.json", "1/../../../etc/passwd", "999/", "1/x"]
)
def test_an_address_names_no_file(here, path):
    answer, content = here.watch.ask(path)
    assert answer.status in (403, 404)
    assert b"root:" not in content
    assert b"idarts watch" in content or b"no such run" in content


def test_every_answer_has_the_headers_that_keep_others_out(here):
    for path, method in (("", "GET"), ("news", "GET"), ("1/", "HEAD"), ("no", "GET"), ("", "POST")):
        headers = here.watch.ask(path, method)[0].headers
        policy = headers["Content-Security-Policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert {"connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} < set(policy)
        assert not any("script-src" in rule and "unsafe" in rule for rule in policy)
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers


def test_no_other_address_of_this_machine_answers(here):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", here.watch.port), timeout=5)
    with open("/proc/net/tcp") as file:
        listening = [line.split()[1] for line in file if line.split()[3] == "0A"]
    assert [place for place in listening if place.endswith(f":{here.watch.port:04X}")] == [
        f"0100007F:{here.watch.port:04X}"
    ]


def test_new_rounds_come_alone(here):
    lines = metrics(rounds=3000, every=100)
    run = started(here.root / "long", lines[:2900])
    address = here.watch.key("long")
    says(here, "long", "2,900 of")
    whole, size = here.watch.news(run=address)
    nothing, least = here.watch.news(whole["after"], run=address)
    assert (least < 100, nothing.get("charts")) == (True, None)
    append(run, lines[2900:2903])
    news, little = until(lambda: _changed(here.watch, whole["after"], address))
    assert "2,903 of" in news["texts"]["tiles"]
    assert {curve["each"] for chart in news["charts"].values() for curve in chart["curves"]} == {8}
    assert {len(curve["x"]) for chart in news["charts"].values() for curve in chart["curves"]} == {1}
    assert sum(len(json.dumps(chart["curves"])) for chart in news["charts"].values()) < 0.02 * size
    now = here.watch.news(run=address)[0]["charts"]
    assert {name: joined(whole["charts"][name], chart) for name, chart in news["charts"].items()} == {
        name: [without_place(curve) for curve in chart["curves"]] for name, chart in now.items()
    }
    assert little < size / 5


def _changed(watch, after, run):
    news, size = watch.news(after, run)
    return (news, size) if news["after"] > after else None


def joined(before, news):
    """What the browser makes of news: the points before `from`, then the new ones."""
    sides = ("x", "y", "low", "high")
    pairs = zip(before["curves"], news["curves"], strict=True)
    return [
        {**without_place(new), **{side: old[side][: new["from"]] + new[side] for side in sides if side in new}}
        for old, new in pairs
    ]


def without_place(curve):
    return {name: value for name, value in curve.items() if name != "from"}


def test_a_run_that_is_killed_says_so_and_continues_when_resumed(here):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    run = started(here.root / "killed", ROUNDS[:20])
    says(here, "killed", "20 of", "in progress")
    (run / ".lock").write_text(str(dead.pid))
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"number": 21, "train_l')
    os.utime(run / "metrics.jsonl", (1, 1))
    os.utime(run / "config.json", (2, 2))
    says(here, "killed", "Search stopped", "idarts search --resume --out")
    assert "is incomplete" in here.watch.ask(here.watch.key("killed"))[1].decode()
    (run / ".lock").write_text(str(os.getpid()))  # resumed: the log is written anew, without the later rounds
    again = run / "again"
    again.write_text("".join(json.dumps(line) + "\n" for line in ROUNDS[:15]))
    again.replace(run / "metrics.jsonl")
    says(here, "killed", "15 of", "in progress")


def test_a_run_that_is_overwritten_starts_again(here):
    run = started(here.root / "replaced", ROUNDS[:40])
    address = here.watch.key("replaced")
    says(here, "replaced", "40 of")
    before = here.watch.news(run=address)[0]
    (run / "metrics.jsonl").unlink()
    (run / "config.json").unlink()
    says(here, "replaced", "does not exist")
    assert here.watch.ask(address)[0].status == 200
    started(run, ROUNDS[:3], config("darts", rounds=7))
    says(here, "replaced", "3 of 7", "darts searched")
    after = here.watch.news(before["after"], address)[0]
    assert after["shape"] != before["shape"]
    assert after["charts"]["train_loss"]["curves"][0]["x"] == [1, 2, 3]


def test_damage_is_one_line_and_ends_with_its_cause(here):
    run = started(here.root / "damaged", ROUNDS[:5])
    append(run, ["no object"])
    append(run, ROUNDS[5:9])
    says(here, "damaged", "9 of", "metrics.jsonl line 6 is &#x27;no object&#x27;")
    (run / "metrics.jsonl").write_text("")
    append(run, ROUNDS[:8])
    until(lambda: "line 6" not in here.watch.facts("damaged"))
    good = (run / "config.json").read_bytes()
    (run / "config.json").write_bytes(b'{"space": ')
    says(here, "damaged", "config.json is damaged", "8 of")
    (run / "config.json").write_bytes(good)
    (run / "result.json").write_bytes(b"\xff\xfe")
    says(here, "damaged", "result.json is damaged", "8 of")
    (run / "result.json").unlink()
    until(lambda: 'problem">' not in here.watch.facts("damaged") and "damaged (" not in here.watch.facts("damaged"))


def test_odd_content_in_one_run_does_not_hide_the_others(here):
    run = started(here.root / "odd", [{"number": 1, "train_loss": "x" * 1000, "seconds": [1]}, {"number": 10**25}])
    append(run, [{"number": 2, "train_loss": 10**400, "architecture": 5, "epoch": {}, "alpha": {"cell": [[1, "a"]]}}])
    append(run, [{"number": 3, "train_loss": 1e300, "<script>evil()</script>": 2.0, "valid_accuracy": True}])
    (run / "config.json").write_text(json.dumps({"space": ["<img src=x>"], "rounds": "many", "data": {"name": None}}))
    says(here, "odd", "alpha is")
    answer, page = here.watch.ask(here.watch.key("odd"))
    assert (answer.status, b"<script>evil" in page, b"<img src=x" in page) == (200, False, False)
    assert "100 of 100" in here.watch.facts("first")


def test_links_lead_nowhere(here, tmp_path):
    secret = write_run(tmp_path / "secret", settings=config(note="a secret"))
    (here.root / "linked").symlink_to(secret)
    run = started(here.root / "links", [])
    for name in ("metrics.jsonl", "config.json"):
        (run / name).unlink()
        (run / name).symlink_to(secret / name)
    says(here, "links", "symbolic link")
    (run / "config.json").unlink()
    (run / "config.json").write_text(json.dumps(config()))
    (run / "metrics.jsonl").unlink()
    os.mkfifo(run / "metrics.jsonl")  # must not block
    says(here, "links", "is not a regular file")
    assert b"a secret" not in here.watch.ask(here.watch.key("links"))[1]
    assert ">linked<" not in here.watch.ask()[1].decode()


def test_runs_are_listed_newest_first(here):
    for place, name in enumerate(["old", "new"]):
        started(here.root / name, ROUNDS[:1])
        os.utime(here.root / name / "config.json", (3e9 + place, 3e9 + place))
        here.watch.key(name)
    page = here.watch.ask()[1].decode()
    assert page.index(">new</a>") < page.index(">old</a>") < page.index(">first</a>")


def test_one_run_is_shown_at_once_and_ctrl_c_ends_it(tmp_path):
    run = write_run(tmp_path / "only")
    with watching(run) as made:
        assert made.path.endswith("/1/")
        page = made.ask()[1].decode()
        assert "Search finished" in page
        assert "All runs" not in page
        code, out, error = made.stop()
    assert (code, out, error) == (0, "", "")
    assert made.hint == "Press Ctrl-C to stop."


@pytest.mark.parametrize("case", ["port", "folder"])
def test_a_mistake_is_one_line(here, tmp_path, case):
    wrong = {"port": [here.root, "--port", str(here.watch.port)], "folder": [tmp_path / "no-such"]}[case]
    done = subprocess.run(
        [sys.executable, "-m", "idarts", "watch", *map(str, wrong)], capture_output=True, text=True, check=False
    )
    said = {"port": f"port {here.watch.port} cannot be used", "folder": "no-such does not exist; name a run"}[case]
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr

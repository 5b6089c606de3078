"""`jumbo serve` as people use it: a real server, and two real browsers at once."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page
from optuna.trial import FrozenTrial, TrialState
from ports import free_port

from jumbo_bo.runner.book import opened_book
from jumbo_bo.study.study_file import load

pytestmark = [
    pytest.mark.integration,
    # The browser is started by a fork that does nothing but pass on two pipes.
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
]

NASTY = "</dd><script>window.broken=1</script><img src=x onerror='window.broken=1'>"
STUDY = f"""
name = "coating"
direction = "maximize"
trials = 12

[space]
temperature = {{ type = "int", low = 60, high = 120, step = 5 }}
time = {{ type = "float", low = 0.5, high = 3.0 }}
additive = {{ type = "categorical", choices = ['''{NASTY}''', "none"] }}

[limits]
purity = {{ min = 95 }}
"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PATIENCE = 600  # seconds


class Server:
    """`jumbo serve` in a folder of its own, with some open experiments."""

    def __init__(self, folder: Path, open_trials: int) -> None:
        self.folder, self.port = folder, free_port()
        (folder / "study.toml").write_text(STUDY)
        with opened_book(load(folder / "study.toml")) as book:
            for i in range(open_trials):
                book.add(TrialState.RUNNING, {"temperature": 60 + 5 * i, "time": 1.0, "additive": NASTY}, {})
        self.process = self.start()
        assert self.process.stdout is not None
        self.said = [self.process.stdout.readline() for _ in range(3)]
        (self.address,) = re.findall(r"http://\S+", "".join(self.said))
        self.site = self.address.partition("/enter")[0]

    def start(self) -> subprocess.Popen[str]:
        code = "from jumbo_bo.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", "study.toml", "--no-browser", "--port", str(self.port)]

        def heed() -> None:  # a shell that starts the tests in the background has it ignored
            signal.signal(signal.SIGINT, signal.default_int_handler)

        return subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
        )

    def stop(self, how: signal.Signals = signal.SIGINT) -> str:
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE)
        return out + err

    def trials(self) -> list[FrozenTrial]:
        with opened_book(load(self.folder / "study.toml"), create=False) as book:
            return book.all_trials()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path, open_trials=2)
    try:
        yield made
    finally:
        assert "Traceback" not in made.stop()
        assert made.process.returncode == 130


def enter(tab: Page, server: Server, name: str) -> None:
    tab.call("Network.clearBrowserCookies")
    tab.show(server.address)
    tab.wait("location.pathname === '/' && document.readyState === 'complete'")
    put(tab, "#name", name)
    click(tab, ".name button")
    tab.wait(f"document.querySelector('#name')?.defaultValue === '{name}'")


def put(tab: Page, field: str, text: str) -> None:
    """As if it was typed."""
    tab.run(
        f"{{const f = document.querySelector({field!r}); f.focus(); f.value = {text!r}; "
        "f.dispatchEvent(new Event('input', {bubbles: true})); f.blur()}"
    )


def click(tab: Page, button: str) -> None:
    """Returns before the page is left."""
    tab.run(f"setTimeout(() => document.querySelector({button!r}).click()); 0")


def test_two_people_enter_at_once(tab: Page, other_tab: Page, server: Server) -> None:
    tabs = {"Anna": tab, "Ben": other_tab}
    for name, its in tabs.items():
        enter(its, server, name)
    for its, value in ((tab, "58.4"), (other_tab, "61")):
        put(its, "#trial-0 [name=value]", value)
        put(its, "#trial-0 [name='measured:purity']", "96")
    for its in tabs.values():
        click(its, "#trial-0 form button")
    for its in tabs.values():
        its.wait("!document.querySelector('#trial-0') && !!document.querySelector('.said:not([hidden]), .lost')")
    (stored, lost) = sorted(tabs, key=lambda name: tabs[name].run("!!document.querySelector('.lost')"))
    trial = server.trials()[0]
    assert trial.user_attrs["entered by"] == stored
    assert trial.value == {"Anna": 58.4, "Ben": 61.0}[stored]
    assert f"Trial 0: {trial.value:g} (purity 96), stored." in tabs[stored].run("document.body.innerText")
    told = tabs[lost].run("document.querySelector('.lost').innerText")
    assert f"has a result already: {trial.value:g}, entered by {stored} on" in told
    mine = tabs[lost].run("document.querySelector('.lost [name=value]').value")
    assert mine == {"Anna": "58.4", "Ben": "61"}[lost], "what was typed is still there"

    put(tabs[lost], ".lost [name=reason]", "calibrated again")
    click(tabs[lost], ".lost form button")
    tabs[lost].wait("document.body.innerText.includes(' replaced by ')")
    assert server.trials()[0].value == float(mine)
    assert f"calibrated again ({lost})" in str(server.trials()[0].user_attrs["corrected"])
    for its in tabs.values():
        assert its.run("window.broken") is None
        assert {url.partition("/enter")[0][: len(server.site)] for url in its.requests()} == {server.site}
        policy = [c for c in its.complaints() if "409" not in str(c)]  # which the browser notes
        assert policy == []


def test_both_ask_at_once_and_see_what_the_other_got(tab: Page, other_tab: Page, server: Server) -> None:
    for its, name in ((tab, "Anna"), (other_tab, "Ben")):
        enter(its, server, name)
    for its in (tab, other_tab):
        click(its, ".ask button")
    for its in (tab, other_tab):  # without a reload by hand
        its.wait("document.querySelectorAll('.trial').length === 4")
    settings = [tuple(t.params.values()) for t in server.trials()]
    assert len(set(settings)) == len(settings) == 4
    shown = tab.run("[...document.querySelectorAll('#trial-3 dd')].map(d => d.textContent)")
    assert str(server.trials()[3].params["temperature"]) == shown[0]


def test_what_somebody_types_is_not_thrown_away(tab: Page, other_tab: Page, server: Server) -> None:
    for its, name in ((tab, "Anna"), (other_tab, "Ben")):
        enter(its, server, name)
    put(tab, "#trial-1 [name=value]", "half of a num")
    put(other_tab, "#trial-0 [name=value]", "3")
    click(other_tab, "#trial-0 form button")
    tab.wait("!document.getElementById('changed').hidden")
    assert tab.run("document.querySelector('#trial-1 [name=value]').value") == "half of a num"
    click(tab, "#trial-1 form button")
    tab.wait("document.body.innerText.includes('expected a number')")
    assert tab.run("document.querySelector('#trial-1 [name=value]').value") == "half of a num"


def test_the_page_works_without_javascript(tab: Page, server: Server) -> None:
    enter(tab, server, "Anna")
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.call("Page.navigate", url=f"{server.site}/?again")
        tab.wait("location.search === '?again' && document.readyState === 'complete'")
        put(tab, "#trial-0 [name=value]", "3")
        tab.run("document.querySelector('#trial-0 form button').click()")
        tab.wait("document.body.innerText.includes('Trial 0: 3 (purity not measured), stored.')")
        tab.run("document.querySelector('#trial-1 summary').click()")
        put(tab, "#trial-1 [name=reason]", "burst")
        tab.run("document.querySelector('#trial-1 details button').click()")
        tab.wait("document.body.innerText.includes('Trial 1: failed, stored.')")
        assert tab.run("document.getElementById('print')") is None
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert [t.state.name for t in server.trials()] == ["COMPLETE", "FAIL"]


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (390, "dark"), (1200, "light")])
def test_the_page_fits_the_screen(tab: Page, server: Server, width: int, scheme: str) -> None:
    enter(tab, server, "Anna")
    put(tab, "#trial-0 [name=value]", "3")
    click(tab, "#trial-0 form button")
    tab.wait("!document.querySelector('#trial-0')")
    for path in ("/", "/trials", "/sheet", "/report"):
        tab.show(f"{server.site}{path}", width, scheme)
        tab.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert (tab.run("innerWidth"), tab.run(OVERFLOW)) == (width, 0), path
        (red, green, blue) = re.findall(r"\d+", tab.run("getComputedStyle(document.body).backgroundColor"))[:3]
        assert (max(map(int, (red, green, blue))) < 60) is (scheme == "dark")
        small = tab.run(
            "[...document.querySelectorAll('main button, main input:not([type=hidden])')].filter(b => "
            "b.offsetHeight && b.offsetHeight < 40).length"
        )
        assert small == 0, "large enough for a finger"


def test_the_sheet_on_paper(tab: Page, server: Server) -> None:
    enter(tab, server, "Anna")
    tab.show(f"{server.site}/sheet", scheme="dark")
    tab.call("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "['nav', '.screen', '.sheet'].map(s => !!document.querySelector(s).getClientRects().length)"
        assert tab.run(shown) == [False, False, True]
        assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        tab.call("Emulation.setEmulatedMedia", media="")
    assert tab.call("Page.printToPDF", preferCSSPageSize=True)["data"].startswith("JVBERi0")  # %PDF-


def test_the_report_follows_the_study(tab: Page, other_tab: Page, server: Server) -> None:
    enter(tab, server, "Anna")
    enter(other_tab, server, "Ben")
    tab.show(f"{server.site}/report")
    tab.wait("!!document.querySelector('iframe') && !!document.body.dataset.report")
    before = tab.run("document.body.dataset.report")
    put(other_tab, "#trial-0 [name=value]", "77.25")
    click(other_tab, "#trial-0 form button")
    tab.wait(f"!!document.body.dataset.report && document.body.dataset.report !== '{before}'")
    assert tab.complaints() == []
    other_tab.show(f"{server.site}/report/page")
    assert "77.25" in other_tab.run("document.querySelector('#trials').innerText")
    assert other_tab.run("document.querySelectorAll('#plot-progress .point').length") > 0, "its scripts run"
    assert other_tab.run("window.origin") == "null", "and reach nothing of the page"


def test_a_page_from_elsewhere_cannot_enter_anything(tab: Page, server: Server) -> None:
    enter(tab, server, "Anna")
    evil = server.folder / "evil.html"
    fields = '<input name="value" value="1"><input name="form" value="1"><input name="csrf" value="1">'
    evil.write_text(
        f'<main></main><form method="post" action="{server.site}/trial/0/tell">{fields}</form>'
        "<script>document.forms[0].submit()</script>"
    )
    tab.call("Page.navigate", url=evil.as_uri())
    tab.wait(f"location.href.startsWith('{server.site}') && document.readyState === 'complete'")
    assert "Forbidden" in tab.run("document.body.innerText")
    assert server.trials()[0].state == TrialState.RUNNING


def test_one_port_one_server_and_a_clean_end(tmp_path: Path) -> None:
    server = Server(tmp_path, open_trials=0)
    second = server.start()
    _, error = second.communicate(timeout=PATIENCE)
    assert second.returncode == 1
    assert f"port {server.port} of 127.0.0.1 cannot be used" in error
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert f"0100007F:{server.port:04X}" in listening, "loopback"
    assert f"00000000:{server.port:04X}" not in listening, "not for other machines"
    output = server.stop(signal.SIGTERM)
    assert server.process.returncode == 130
    assert "Stopped. All that was entered is stored. Go on with: jumbo serve study.toml" in output


def test_a_stop_in_the_middle_of_a_suggestion(tab: Page, server: Server) -> None:
    """The one at hand is finished, those that wait are dropped: no trial without parameters is left behind."""
    enter(tab, server, "Anna")
    put(tab, ".ask [name=n]", "20")
    click(tab, ".ask button")
    end = time.monotonic() + PATIENCE
    while len(server.trials()) < 4:
        assert time.monotonic() < end
        time.sleep(0.05)
    server.stop()
    assert server.process.returncode == 130
    assert all(t.params for t in server.trials())
    assert 4 <= len(server.trials()) <= 22

"""The page in a real browser: Chromium without a window, driven over its DevTools protocol. Exit 77 where there is none.

    test_browser.py ORRERY SOURCE [FOLDER]     screenshots go to FOLDER where it is given

With $ORRERY_AXE, the path of axe-core's axe.min.js, the page is also looked at by axe.
"""
import base64
import ctypes.util
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

binary = sys.argv[1]
pictures = sys.argv[3] if len(sys.argv) > 3 else None
browser = next((b for b in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if b), None)
if browser is None:
    print("no Chromium: skipped")
    sys.exit(77)


class Tab:
    """One page over a WebSocket (RFC 6455), as much of it as DevTools needs."""

    def __init__(self, url):
        host, port, path = re.match(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self.bytes += self.socket.recv(65536)
        self.bytes = self.bytes.split(b"\r\n\r\n", 1)[1]
        self.count, self.errors = 0, []

    def take(self, count):
        while len(self.bytes) < count:
            part = self.socket.recv(1 << 20)
            assert part, "the browser has gone"
            self.bytes += part
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def hear(self):
        text = b""
        while True:
            first, length = self.take(2)
            if length == 126:
                length = struct.unpack(">H", self.take(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.take(8))[0]
            text += self.take(length)
            if first & 0x80:
                return json.loads(text)

    def call(self, method, **params):
        self.count += 1
        data = json.dumps({"id": self.count, "method": method, "params": params}).encode()
        head = struct.pack(">BBH", 0x81, 0x80 | 126, len(data)) if len(data) < 65536 else struct.pack(">BBQ", 0x81, 0x80 | 127, len(data))
        self.socket.sendall(head + bytes(4) + data)
        while True:
            message = self.hear()
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.errors.append(json.dumps(message["params"])[:500])
            if message.get("id") == self.count:
                assert "error" not in message, message
                return message["result"]

    def js(self, code):
        result = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, (code, result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, code, seconds=30):
        last = time.monotonic() + seconds
        while not (value := self.js(code)):
            assert time.monotonic() < last, (code, self.js("document.getElementById('panel').innerText"), self.js("document.getElementById('error').textContent"), self.errors)
            time.sleep(0.03)
        return value

    def type(self, field, text):
        """As a person does: the field is focused, its text chosen, keys come one by one."""
        self.js(f"document.getElementById('{field}').focus(); document.getElementById('{field}').select()")
        self.call("Input.insertText", text=text)

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))

    def screen(self, width, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, name):
        if pictures:
            self.call("Page.bringToFront")
            data = self.call("Page.captureScreenshot", format="png")["data"]
            with open(os.path.join(pictures, name + ".png"), "wb") as f:
                f.write(base64.b64decode(data))


def open_tab(url, ready=None):
    request = urllib.request.Request(f"http://127.0.0.1:{devtools}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        tab = Tab(json.load(answer)["webSocketDebuggerUrl"])
    for domain in ("Page", "Runtime", "Log"):
        tab.call(domain + ".enable")
    tab.screen(1280)
    tab.call("Page.navigate", url=url)
    if ready is None:
        tab.until(ANSWERED)
    else:
        time.sleep(0.5)
        tab.js(f"new Promise(done => {{ const look = () => {ready} ? done(1) : setTimeout(look, 30); look(); }})")
    return tab


ANSWERED = "!!document.getElementById('took') && document.getElementById('took').textContent.startsWith('Answered') && document.getElementById('sentence').className === ''"
SENTENCE = "document.getElementById('sentence').textContent"

def accessible(tab):
    """What axe-core finds, where $ORRERY_AXE names its axe.min.js."""
    script = os.environ.get("ORRERY_AXE")
    if script is None:
        return []
    if not tab.js("typeof axe === 'object'"):
        with open(script, encoding="utf-8") as f:
            tab.js(f.read() + "; 0")
    found = tab.js("axe.run({resultTypes: ['violations']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 100)).join(' | ')))")
    return found


# Names, contrasts and overflow, as far as a page without axe can look at itself.
LOOK = """(() => {
  const bad = [];
  for (const e of document.querySelectorAll('input, button, select, [role=tab], [role=button]')) {
    const name = e.getAttribute('aria-label') || (e.labels && e.labels.length && e.labels[0].textContent) || e.textContent;
    if (!name || !name.trim()) bad.push('no name: ' + e.outerHTML.slice(0, 80));
  }
  const ids = new Set();
  for (const e of document.querySelectorAll('[id]')) { if (ids.has(e.id)) bad.push('twice: ' + e.id); ids.add(e.id); }
  if (document.documentElement.scrollWidth > window.innerWidth + 1) bad.push('wider than the window: ' + document.documentElement.scrollWidth);
  const light = (c) => { const v = c.map(x => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; }); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
  const rgb = (text) => { const m = text.match(/[\\d.]+/g).map(Number); return m.length === 4 && m[3] === 0 ? null : m.slice(0, 3); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
  for (const e of document.querySelectorAll('p, span, label, button, a, td, th, b, li, legend, h1, h2, input')) {
    if (!e.textContent.trim() && e.tagName !== 'INPUT') continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push('contrast ' + ratio.toFixed(2) + ': ' + e.outerHTML.slice(0, 80));
  }
  return bad;
})()"""


def test_fields(tab):
    """The answer follows the fields, within a time that a person does not notice, and undo brings it back."""
    first = tab.js(SENTENCE)
    assert "64 GPUs" in first and "step takes" in first, first
    tab.type("f-gpus", "128")
    tab.until(f"{SENTENCE}.includes('128 GPUs') && {ANSWERED}")
    print("  " + tab.js("document.getElementById('took').textContent"))
    tab.type("f-parallel-tensor", "3")
    assert "parallel.tensor" in tab.until("document.getElementById('error').textContent")
    tab.type("f-parallel-tensor", "2")
    tab.until(f"document.getElementById('error').textContent === '' && {ANSWERED}")
    tab.type("find", "usd_per_gpu_hour")
    tab.until("!!document.querySelector('#found button')")
    tab.js("document.querySelector('#found button').click()")
    tab.until("document.activeElement.id === 'f-cluster-usd_per_gpu_hour'")
    tab.type("f-cluster-usd_per_gpu_hour", "2")
    tab.until(f"{SENTENCE}.includes('dollars')")
    for _ in range(20):
        tab.js("document.getElementById('undo').click()")
    tab.until(f"{SENTENCE} === {json.dumps(first)} && {ANSWERED}")


def test_tabs(tab):
    for name, words in (("Time", "compute"), ("Memory", "stage"), ("What-would-help", "waits for"), ("Sources", "predicted"), ("Answer", "MFU")):
        tab.js(f"document.getElementById('tab-{name}').click()")
        tab.until(f"document.getElementById('panel').textContent.includes('{words}')")


def test_jobs(tab):
    tab.js("document.getElementById('tab-Layouts').click()")
    tab.js("document.getElementById('search').click()")
    assert tab.until("document.getElementById('proof') && document.getElementById('proof').textContent", 90).startswith("Proved")
    tab.picture("page-layouts")
    before = tab.js("location.hash")
    tab.js("document.querySelector('#panel svg circle').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    tab.until(f"location.hash !== {json.dumps(before)} && {ANSWERED}")
    tab.js("document.getElementById('tab-Plan').click(); document.getElementById('plan').click()")
    tab.until("!!document.getElementById('cancel')")
    tab.js("document.getElementById('cancel').click()")
    tab.until("document.getElementById('panel').textContent.includes('Cancelled')")


PANEL = "document.getElementById('panel').textContent"


def test_questions(tab):
    """Each tab with a button asks its question and shows the answer; a job's tab goes on while another is looked at."""
    for name, button, words in (("Sweep", "sweep", "Fastest that fits"), ("Failures", "campaign", "Goodput"), ("Network", "collective", "NCCL takes"),
                                ("Fine-tuning", "finetune", "QLoRA"), ("Reinforcement-learning", "loop", "It is bound by")):
        tab.js(f"document.getElementById('tab-{name}').click()")
        tab.js(f"document.getElementById('{button}').click()")
        if button == "sweep":
            tab.js("document.getElementById('tab-Answer').click(); document.getElementById('tab-Sweep').click()")
        tab.until(f"{PANEL}.includes('{words}') && !{PANEL}.includes('Asking')", 60)
        tab.picture("page-" + button)
        bad = tab.js(LOOK) + accessible(tab)
        assert not bad, (name, bad[:8])
    tab.js("document.getElementById('tab-Fine-tuning').click()")
    tab.js("document.querySelector('[aria-label^=\"Use LoRA\"]').focus(); document.activeElement.click()")
    tab.until(f"!!document.getElementById('f-training-task') && {ANSWERED}")
    assert tab.js("document.getElementById('panel').contains(document.activeElement)"), "the keyboard stays in the panel"
    tab.js("document.getElementById('undo').click()")
    tab.until(f"!document.getElementById('f-training-task') && {ANSWERED}")


def test_history(tab):
    """What was asked is there again, with a button that makes it the scenario."""
    tab.js("document.getElementById('tab-History').click()")
    if not keeps:
        tab.until(f"{PANEL}.includes('Nothing is kept')")
        return
    tab.until(f"{PANEL}.includes('sweep') && {PANEL}.includes('campaign') && {PANEL}.includes('llama3-8b, dgx-h100')")
    assert not tab.js(LOOK)
    tab.js("document.querySelector('#panel button').click()")
    tab.until(ANSWERED)
    tab.js("document.getElementById('undo').click()")
    tab.until(ANSWERED)


def test_best_so_far(tab):
    """A search that takes long shows the best so far, which is read aloud."""
    for field, text in (("model", "gpt3-175b"), ("gpus", "1024"), ("parallel-tensor", "auto"), ("parallel-pipeline", "auto"), ("training-micro_batch", "auto"), ("training-global_batch", "1536"), ("training-sequence_length", "2048")):
        tab.type("f-" + field, text)
    tab.until(f"{SENTENCE}.includes('1,024 GPUs') && {ANSWERED}")
    tab.js("document.getElementById('tab-Layouts').click(); document.getElementById('search').click()")
    tab.until("!!document.querySelector('.best') && document.querySelector('.best').textContent.includes('Best so far') || !!document.getElementById('proof')", 60)
    tab.js("if (document.getElementById('cancel')) document.getElementById('cancel').click()")
    for _ in range(20):
        tab.js("document.getElementById('undo').click()")
    tab.until(f"{SENTENCE}.includes('64 GPUs') && {ANSWERED}")


def test_trace(tab):
    """An upload of a recorded trace, as a browser's file: the page keeps what is read and sets it beside the prediction."""
    path = os.path.join(folder, "rank0.json.gz")
    scenario = os.path.join(folder, "scenario.json")
    with open(scenario, "w", encoding="utf-8") as f:
        json.dump({"model": "llama3-8b", "cluster": {"preset": "dgx-h100", "nodes": 8}, "training": {"sequence_length": 8192, "global_batch": 512, "micro_batch": 1},
                   "parallel": {"tensor": 1, "zero": 1}, "execution": {"framework": "megatron-core"}}, f)
    subprocess.run([binary, "run", scenario, "--trace-kernels", path, "--quiet", "--output", os.path.join(folder, "out.txt")], check=True)
    tab.js("document.getElementById('tab-Trace').click()")
    node = tab.call("Runtime.evaluate", expression="document.getElementById('t-trace')")["result"]["objectId"]
    tab.call("DOM.setFileInputFiles", files=[path], objectId=node)
    tab.until(f"{PANEL}.includes('was measured')", 60)
    assert "products" in tab.js(PANEL) and "rank0.json.gz" in tab.js(PANEL)


def test_link(tab):
    tab.type("f-gpus", "256")
    tab.until(f"{SENTENCE}.includes('256 GPUs') && {ANSWERED}")
    other = open_tab(tab.js("location.href"))
    assert other.js(SENTENCE) == tab.js(SENTENCE)
    assert not other.errors, other.errors


def test_compare(tab):
    tab.js("document.getElementById('keep').click()")
    tab.type("f-training-recompute", "full")
    tab.until(ANSWERED)
    time.sleep(0.2)
    tab.until(ANSWERED)
    tab.js("document.getElementById('tab-Compare').click()")
    tab.until("document.getElementById('panel').textContent.includes('training.recompute')")
    tab.until("document.querySelectorAll('#t-compare-b option').length > 10")
    tab.js("const b = document.getElementById('t-compare-b'); b.value = 'example:gpt3-175b'; b.dispatchEvent(new Event('change'))")
    tab.until("document.getElementById('panel').textContent.includes('gpt3-175b') && document.querySelector('#panel table td') !== null")
    tab.until("[...document.querySelectorAll('#panel th')].some((e) => e.textContent.startsWith('model.'))")


def test_keyboard(tab):
    tab.js("document.getElementById('tab-Answer').click(); document.getElementById('tab-Answer').focus()")
    tab.press("ArrowRight", 39)
    assert tab.js("document.activeElement.id") == "tab-Time"
    seen = set()
    tab.js("document.querySelector('.skip').focus()")
    for _ in range(40):
        tab.press("Tab", 9)
        seen.add(tab.js("document.activeElement.id"))
    assert {"f-model", "f-deadline", "f-training-recompute", "find", "undo", "upload", "tab-Time"} <= seen, seen


def test_skip(tab):
    """The link past the form goes to the details and leaves the scenario as it is."""
    before = tab.js("location.hash")
    tab.js("document.querySelector('.skip').focus()")
    tab.press("Enter", 13)
    tab.until("document.activeElement.id === 'answer'")
    time.sleep(0.2)
    assert tab.js("location.hash") == before and "256 GPUs" in tab.js(SENTENCE)


def test_looks(tab):
    for width in (1280, 390):
        for dark in (False, True):
            tab.screen(width, dark=dark)
            for name in ("Answer", "Memory", "Layouts", "Failures"):
                tab.js(f"document.getElementById('tab-{name}').click(); window.scrollTo(0, 0)")
                bad = tab.js(LOOK) + accessible(tab)
                assert not bad, (width, dark, name, bad[:8])
            tab.js("document.getElementById('tab-Answer').click(); document.activeElement.blur()")
            tab.picture(f"page-{width}-{'dark' if dark else 'light'}")


def test_report(tab):
    """A report's timeline zooms along time alone: ticks and names of ranks stay, passes get their numbers; no page is too wide."""
    path = os.path.join(folder, "report.html")
    subprocess.run([binary, "report", "gpt3-175b", "--no-search", "--quiet", "--output", path], check=True)
    other = open_tab("file://" + path, "document.readyState === 'complete'")
    ticks = "[...document.querySelectorAll('#pipeline .ticks text')].map(e => Number(e.textContent))"
    names = "[...document.querySelectorAll('#pipeline svg.zooms > text.tick')].map(e => e.textContent).join()"
    whole, lanes = other.js(ticks), other.js(names)
    for _ in range(3):
        other.js("document.querySelector('#pipeline [data-zoom=\"2\"]').click()")
    near = other.js(ticks)
    assert len(near) >= 3 and near[-1] - near[0] < (whole[-1] - whole[0]) / 4, (whole, near)
    assert other.js(names) == lanes == "0,1,2,3,4,5,6,7", lanes
    assert other.js("document.querySelectorAll('#pipeline .numbers text').length") > 50
    frame = "document.querySelector('#pipeline div.wide')"
    other.js(frame + ".focus()")
    other.press("ArrowRight", 39)
    assert other.js(ticks)[0] > near[0]
    other.press("Home", 36)
    assert other.js(ticks) == whole
    for width in (1280, 390):
        other.screen(width)
        bad = [b for b in other.js(LOOK) if "contrast" not in b] + accessible(other)
        assert not bad, (width, bad[:8])
    assert not other.errors, other.errors


folder = tempfile.mkdtemp()
environment = {**os.environ, "TMPDIR": folder}
keeps = ["--store", os.path.join(folder, "answers.db")] if ctypes.util.find_library("sqlite3") else []
server = subprocess.Popen([binary, "serve", "--port", "0", "--quiet", *keeps], stdout=subprocess.PIPE, text=True, env=environment)
window = None
status = 1
try:
    url = server.stdout.readline().strip()
    window = subprocess.Popen([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                               "--remote-debugging-port=0", f"--user-data-dir={folder}/profile", "about:blank"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    devtools = None
    for line in window.stderr:
        if found := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
            devtools = int(found[1])
            break
    if devtools is None:
        print("Chromium does not start here: skipped")
        status = 77
    else:
        page = open_tab(url)
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                begun = time.monotonic()
                test(page)
                print(f"ok {name} ({time.monotonic() - begun:.1f} s)", flush=True)
        unexpected = [e for e in page.errors if "status of 400" not in e]  # what the fields refuse
        assert not unexpected, unexpected
        status = 0
finally:
    if window is not None:
        window.terminate()
        window.wait(30)
        window.stderr.close()
    server.send_signal(signal.SIGINT)
    server.wait(30)
    server.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(status)

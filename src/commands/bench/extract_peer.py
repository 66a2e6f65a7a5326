"""Texts of the pages of a directory by trafilatura: NAME.html to NAME.theirs, and what each cost."""

import json
import pathlib
import sys
import time

import trafilatura

rounds = int(sys.argv[2])
pages = sorted(pathlib.Path(sys.argv[1]).glob("*.html"))
costs = {}
for turn in range(rounds):
    for page in pages:
        html = page.read_bytes()
        begun = time.process_time()
        text = trafilatura.extract(html, include_comments=False) or ""
        cost = (time.process_time() - begun) * 1000
        costs.setdefault(page.stem, []).append(cost)
        page.with_suffix(".theirs").write_text(text)
middle = {name: sorted(all)[len(all) // 2] for name, all in costs.items()}
print(json.dumps({"version": trafilatura.__version__, "ms": middle}))

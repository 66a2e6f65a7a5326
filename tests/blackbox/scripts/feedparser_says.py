"""What feedparser makes of every feed below a directory, a JSON object a line: the judge of our reader."""

import calendar
import json
import os
import sys
import warnings

import feedparser

warnings.simplefilter("ignore")
root, url = sys.argv[1], sys.argv[2]


def seconds(entry, *names):
    for name in names:
        parsed = dict.get(entry, name + "_parsed")
        if parsed:
            return calendar.timegm(parsed)
    return None


for folder, _, names in sorted(os.walk(root)):
    for name in sorted(names):
        if not name.endswith((".xml", ".json")):
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            data = file.read()
        said = {"file": path}
        try:
            told = feedparser.parse(
                data,
                response_headers={"content-location": url},
                sanitize_html=False,
                resolve_relative_uris=False,
            )
        except Exception as error:
            said["failed"] = repr(error)
            print(json.dumps(said))
            continue
        said["version"] = told.get("version", "")
        said["entries"] = [
            {
                "link": entry.get("link"),
                "id": dict.get(entry, "id"),
                "title": dict.get(entry, "title"),
                "title_type": (dict.get(entry, "title_detail") or {}).get("type"),
                "published_s": seconds(entry, "published", "created"),
                "updated_s": seconds(entry, "updated"),
            }
            for entry in told.entries
        ]
        print(json.dumps(said))

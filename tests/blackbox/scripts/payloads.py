"""Every record of WARC files as a line of JSON, as warcio reads it: what a judge of our exports sees."""
import hashlib
import json
import sys

from warcio.archiveiterator import ArchiveIterator

for path in sys.argv[1:]:
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            head = record.rec_headers.get_header
            http = record.http_headers
            payload = record.raw_stream.read()
            print(json.dumps({
                "type": record.rec_type,
                "id": head("WARC-Record-ID"),
                "url": head("WARC-Target-URI"),
                "date": head("WARC-Date"),
                "ip": head("WARC-IP-Address"),
                "status": http.get_statuscode() if http and record.rec_type != "request" else None,
                "request": http.protocol + " " + http.statusline if http and record.rec_type == "request" else None,
                "headers": [list(pair) for pair in http.headers] if http else [],
                "bytes": len(payload),
                "sha1": hashlib.sha1(payload).hexdigest(),
                "digest": head("WARC-Payload-Digest"),
                "profile": head("WARC-Profile"),
                "refers_url": head("WARC-Refers-To-Target-URI"),
                "refers_date": head("WARC-Refers-To-Date"),
                "concurrent": head("WARC-Concurrent-To"),
                "truncated": head("WARC-Truncated"),
                "text": payload.decode("utf-8") if record.rec_type == "warcinfo" else None,
            }))

"""A WARC with URLs, statuses and types as odd as they come, by warcio: an index of it has every quirk in it."""
import io
import random
import sys

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

random.seed(int(sys.argv[2]))
pick = random.choice


def token(count, alphabet="0123456789abcdefABCDEF"):
    return "".join(pick(alphabet) for _ in range(count))


HOSTS = [
    "example.org", "WWW.Example.ORG", "www2.a.b.example.co.uk", "127.0.0.1", "1.2", "3279880203", "0177.1", "0x7f.1",
    "[::1]", "[fe80::1%25eth0]", "a..b", "..a.b.", "user:pw@h.test", "u@h@i.test", "b\u00fccher.example",
    "%77ww.x.test", "h%20h", "256.1.1.1", "1.2.3.4.5", "01.2.3.4", "www.", "www1.", "h_1.test", "", "www.www.test",
    "99999999999999",
]
PORTS = ["", "", ":80", ":443", ":8080", ":", ":0", ":99999", ":x", ":00080"]


def path():
    parts = [
        "", "a", "B", "..", ".", "c%20d", "%7Efoo", "%25%32%35", "%2e%2e", "\u00fc", "x;y", "a b",
        "(S(" + token(24) + "))", "(" + token(24) + ")", "p.aspx", "P.ASPX", "q'r", '"', "%zz", "%", "*", "\\", "|",
    ]
    return "/".join([""] + [pick(parts) for _ in range(random.randint(0, 5))])


def query():
    parts = [
        "a=1", "b", "B=2", "a=", "=x", "a=0", "jsessionid=" + token(32), "PHPSESSID=" + token(32), "sid=" + token(32),
        "mysid=" + token(32), "ASPSESSIONIDABCDEFGH=" + token(24, "abcdefXYZ"), "cfid=1&cftoken=2", "CFID=&cftoken=3",
        "q=%20%2B", "x=\u00e9", "?", "&", "a=1=2", "%26=3", "utm=%2525", "",
    ]
    return "&".join(pick(parts) for _ in range(random.randint(0, 4)))


def url():
    scheme = pick(["http://", "https://", "http://", "HTTP://", "http:////", "http://https://", "ftp://", "dns:", "urn:x:"])
    made = scheme + pick(HOSTS) + pick(PORTS) + pick([path(), path(), ""])
    if random.random() < 0.5:
        made += "?" + query()
    return made + ("#f" if random.random() < 0.1 else "")


with open(sys.argv[1], "wb") as out:
    writer = WARCWriter(out, gzip=sys.argv[1].endswith(".gz"))
    for _ in range(1500):
        kind = pick(["response"] * 6 + ["resource", "metadata", "revisit"])
        fields = {"WARC-Date": pick(["2020-01-02T03:04:05Z", "2020-01-02T03:04:05.678Z", "2021-12-31T23:59:59.123456789Z"])}
        if kind in ("response", "revisit"):
            headers = []
            if random.random() < 0.8:
                types = ["text/html", "text/html; charset=utf-8", "TEXT/HTML ;x", "", "image/png,foo", "t\u00e9xt/x"]
                headers.append(("Content-Type", pick(types)))
            if random.random() < 0.3:
                headers.append(("Transfer-Encoding", "chunked"))
            if random.random() < 0.2:
                headers.append(("content-type", "second/x"))
            status = pick(["200 OK", "404 Not Found", "301", "200", "304 Not Modified", "abc def"])
            body = b"" if random.random() < 0.3 else token(random.randint(1, 300)).encode()
            http = StatusAndHeaders(status, headers, protocol=pick(["HTTP/1.0", "HTTP/1.1", "HTTP/2"]))
            record = writer.create_warc_record(
                url(), kind, payload=io.BytesIO(body), http_headers=http, warc_headers_dict=fields)
        else:
            content = pick(["text/plain", "application/warc-fields", "image/png; x=y"])
            record = writer.create_warc_record(
                url(), kind, payload=io.BytesIO(token(20).encode()), warc_content_type=content, warc_headers_dict=fields)
        writer.write_record(record)

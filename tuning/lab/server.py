"""A web of one host on ADDRESS:PORT, for what must not be loopback: every page has the same 3,000 links."""
import asyncio
import sys

PAGE = ("<a href=/p/%d>x</a>" * 3000 % tuple(range(3000))).encode()
ANSWERS = {
    True: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    False: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(PAGE) + PAGE,
}
SMALL = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"


async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ", 2)[1]
            writer.write(ANSWERS[path == b"/robots.txt"] if path in (b"/", b"/robots.txt") else SMALL)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]), backlog=4096)
    await server.serve_forever()


asyncio.run(main())

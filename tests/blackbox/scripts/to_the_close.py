"""Documents that end with their connection, by TLS's own word or without it: to_the_close.py PORT CERT KEY"""
import socket
import ssl
import sys
import threading

port, cert, key = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)


def serve(client):
    try:
        with context.wrap_socket(client, server_side=True) as stream:
            request = b""
            while b"\r\n\r\n" not in request:
                more = stream.recv(4096)
                if not more:
                    return
                request += more
            target = request.split(b" ")[1]
            if target == b"/robots.txt":
                stream.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
                stream.sendall(b"<p>as far as it goes</p>" * 100)
            if target != b"/abrupt":
                stream.settimeout(2)
                stream.unwrap()
    except OSError:
        # The peer may go first.
        pass


listener = socket.create_server(("127.0.0.1", int(port)))
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()

"""Python's http.server over plain HTTP and over TLS: serve.py ROOT HTTP_PORT HTTPS_PORT CERT KEY"""
import functools
import http.server
import ssl
import sys
import threading

root, http_port, https_port, cert, key = sys.argv[1:]
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=root)
plain = http.server.ThreadingHTTPServer(("127.0.0.1", int(http_port)), handler)
secure = http.server.ThreadingHTTPServer(("127.0.0.1", int(https_port)), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=plain.serve_forever, daemon=True).start()
secure.serve_forever()

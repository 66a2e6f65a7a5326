// Node's http and https over the files of a directory, each kind in a coding and a framing of its own:
// serve.js ROOT HTTP_PORT HTTPS_PORT CERT KEY
const crypto = require("crypto");
const fs = require("fs");
const http = require("http");
const https = require("https");
const path = require("path");
const zlib = require("zlib");

const [root, httpPort, httpsPort, cert, key] = process.argv.slice(2);

const kinds = {
  ".html": { type: "text/html; charset=utf-8", coding: "gzip", code: zlib.gzipSync },
  ".txt": { type: "text/plain", coding: "br", code: zlib.brotliCompressSync },
  ".shtml": { type: "text/html", coding: "deflate", code: zlib.deflateSync },
  // Not every Node can make it: it stands beside the file.
  ".css": { type: "text/css", coding: "zstd", code: (_, file) => fs.readFileSync(file + ".zst") },
};

function serve(request, response) {
  const target = request.url;
  let file = path.join(root, target);
  if (!fs.existsSync(file)) {
    response.writeHead(404, { "Content-Type": "text/plain" });
    return response.end("There is no such page.\n");
  }
  if (fs.statSync(file).isDirectory()) {
    if (!target.endsWith("/")) {
      response.writeHead(301, { Location: target + "/" });
      return response.end();
    }
    file = path.join(file, "index.html");
  }
  const kind = kinds[path.extname(file)] || { type: "application/octet-stream" };
  let body = fs.readFileSync(file);
  const tag = '"' + crypto.createHash("sha1").update(body).digest("hex") + '"';
  if (request.headers["if-none-match"] === tag) {
    response.writeHead(304, { ETag: tag });
    return response.end();
  }
  const headers = { "Content-Type": kind.type, ETag: tag };
  const accepted = (request.headers["accept-encoding"] || "").split(",").map((coding) => coding.trim());
  if (kind.coding && accepted.includes(kind.coding) && body.length > 0) {
    body = kind.code(body, file);
    headers["Content-Encoding"] = kind.coding;
  }
  switch (path.basename(file)) {
    case "chunked.html":
      response.writeHead(200, headers);
      for (let at = 0; at < body.length; at += 1000) response.write(body.subarray(at, at + 1000));
      return response.end();
    case "closing.html":
      // Neither a length nor chunks: the document ends with the connection.
      response.shouldKeepAlive = false;
      response.useChunkedEncodingByDefault = false;
      response.writeHead(200, { ...headers, Connection: "close" });
      return response.end(body);
    default:
      response.writeHead(200, { ...headers, "Content-Length": body.length });
      return response.end(body);
  }
}

http.createServer(serve).listen(Number(httpPort), "127.0.0.1");
https
  .createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, serve)
  .listen(Number(httpsPort), "127.0.0.1");

// Serves this folder, the package and the models, on this machine alone.
//
//     node examples/web/serve.mjs BUILD MODELS [PORT]
//
// BUILD is what bindings/web/build made: the package and the example's part of it.
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { basename, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const kinds = {
  ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm",
  ".png": "image/png", ".jpg": "image/jpeg",
};

// A page with these headers may share memory between threads.
const isolated = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

/** A server on a loopback port (0: a free one) for files right inside these folders: {"": ".", "models": ...}. */
export function serve(folders, port = 0) {
  const server = createServer((request, response) => {
    const parts = decodeURIComponent(request.url.split("?")[0]).split("/").slice(1);
    const folder = folders[parts.length > 1 ? parts[0] : ""];
    const name = parts.at(-1) || "index.html";
    try {
      if (!folder || parts.length > 2 || name !== basename(name)) throw new Error("not here");
      const path = join(folder, name);
      const type = kinds[extname(name)] ?? "application/octet-stream";
      const length = statSync(path).size;
      createReadStream(path).pipe(response.writeHead(200, { "content-type": type, "content-length": length, ...isolated }));
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [build, models, port = "8000"] = process.argv.slice(2);
  const folders = { "": fileURLToPath(new URL(".", import.meta.url)), package: join(build, "package"), example: join(build, "example"), models };
  const server = await serve(folders, Number(port));
  console.log(`http://127.0.0.1:${server.address().port}/`);
}

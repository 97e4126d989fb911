// Serves this folder, the package and the models, on this machine alone.
//
//     node examples/web/serve.mjs PACKAGE MODELS [PORT]
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { basename, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const kinds = {
  ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm",
  ".png": "image/png", ".jpg": "image/jpeg",
};

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
      createReadStream(path).pipe(response.writeHead(200, { "content-type": type, "content-length": length }));
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [packageFolder, modelFolder, port = "8000"] = process.argv.slice(2);
  const server = await serve({ "": fileURLToPath(new URL(".", import.meta.url)), package: packageFolder, models: modelFolder }, Number(port));
  console.log(`http://127.0.0.1:${server.address().port}/`);
}

// Headless Chromium with a software adapter for WebGPU, or without one; its own defaults would keep that adapter away.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { serve } from "../../examples/web/serve.mjs";

/** A function that imports a package of this node_modules folder. */
export function importer(nodeModules) {
  const find = createRequire(join(nodeModules, "..", "package.json"));
  return (name) => import(pathToFileURL(find.resolve(name)).href);
}

/** Calls work(tab, address) with a tab of a fresh browser and a server of these folders. False: there is no Chromium. */
export async function withChromium(nodeModules, hasGpu, folders, work) {
  const { chromium } = (await importer(nodeModules)("playwright-core")).default;
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
  if (!executablePath) return false;
  const profile = mkdtempSync(join(tmpdir(), "onemodel-chromium-"));
  const server = await serve(folders);
  const context = await chromium.launchPersistentContext(profile, {
    executablePath, ignoreDefaultArgs: true, timeout: 120000,
    args: ["--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", `--user-data-dir=${profile}`,
           ...(hasGpu ? ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"] : ["--disable-features=WebGPU"]),
           "about:blank"],
  });
  try {
    const tab = await context.newPage();
    tab.on("pageerror", (error) => console.log(`# page: ${error.message}`));
    await work(tab, `http://127.0.0.1:${server.address().port}/`);
  } finally {
    await context.close();
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
  return true;
}

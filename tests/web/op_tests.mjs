// Runs the operators' tests, which are one program of WebAssembly, in a page or in Node. `createModule` is the
// program's loader, `gpu` the page's WebGPU; `line` gets what it prints.

const run = (createModule, gpu, words, line) => new Promise((resolve, reject) => {
  createModule({ arguments: words, gpu, print: line, printErr: line, done: resolve }).catch(reject);
});

/** report(name, problem) for each case of each program; options are the programs' own. */
export async function runOpTests(createModule, gpu, options, report) {
  const names = [];
  await run(createModule, gpu, [], (line) => names.push(line));
  for (const name of names) {
    const begin = performance.now();
    const problems = [];
    let passed = 0, failed = null;
    const code = await run(createModule, gpu, [name, ...options], (line) => {
      if (line.startsWith("ok ")) ++passed;
      if (line.startsWith("not ok ")) failed = line.replace(/^not ok \d+ - /, "");
      if (line.startsWith("#   ") && failed) {
        problems.push(`${failed}: ${line.slice(4)}`);
        failed = null;
      }
    });
    const problem = problems.join("; ") || (code !== 0 && code !== 77 ? `it ended with ${code}` : null);
    await report(`${name}, ${passed} cases`, problem, (performance.now() - begin) / 1e3);
  }
}

// What the operator tests wait for in a page: a device to be made ready, and the page's other work.
addToLibrary({
  om_web_test_done: (code) => { Module["done"](code); },
  om_web_test_prepare__deps: ["$omGpu"],
  om_web_test_prepare__async: true,
  om_web_test_prepare: () => Asyncify.handleAsync(async () => {
    try {
      await omGpu.prepare({ gpu: Module["gpu"] });
      return 1;
    } catch {
      return 0;
    }
  }),
  om_web_test_give_way__async: true,
  om_web_test_give_way: () => Asyncify.handleAsync(() => new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(0);
  })),
});

// Readers of external data (om_reader), for models that JavaScript loads: a js-library for emscripten. The package adds
// and removes them in Module.onemodelReaders; C knows them by number.
addToLibrary({
  $omReaders__postset: "Module['onemodelReaders'] = omReaders;",
  $omReaders: "=new Map()",

  // The size of what the model calls `location`; -1: there is no such thing.
  om_web_find__deps: ["$omReaders", "$UTF8ToString"],
  om_web_find: (reader, location) => omReaders.get(reader).find(UTF8ToString(location)),

  om_web_is_ready__deps: ["$omReaders", "$UTF8ToString"],
  om_web_is_ready: (reader, location, offset, count) => omReaders.get(reader).isReady(UTF8ToString(location), offset, count),

  om_web_read__deps: ["$omReaders", "$UTF8ToString"],
  om_web_read: (reader, location, offset, count, to) => {
    const bytes = omReaders.get(reader).read(UTF8ToString(location), offset, count);
    HEAPU8.set(bytes, to >>> 0);
    return bytes.length;
  },
});

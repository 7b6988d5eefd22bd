// A Llama that computes from the file's blocks as they are. The parts are those of the chapters:
// tokens, RMS norm, turned queries and keys, attention with a cache, a gated layer, a score a token.
const MOST = 512, RIGHT = {off: [], cuts: [], scale: "root", mask: "causal", positions: "rope", pairing: "pairs", base: 0, norm: "rms", window: 0, sinks: 0};

// A loop in WebAssembly: rows of blocks times m vectors, 32 numbers at once. It is written as
// expressions, each an array of bytes; X holds 72 bytes a block: scale, sum, 32 whole numbers.
const kernel = (memory, half, four) => {
  const leb = n => n < 128 ? [n] : [n & 127 | 128, ...leb(n >>> 7)], whole = n => n < 64 ? [0x41, n] : [0x41, n & 127 | 128, ...whole(n >> 7).slice(1)];
  const [W, ROWS, BLOCKS, X, M, OUT, x, m, out, p, b, row, sums, dots, low] = Array.from({length: 15}, (_, i) => i), BYTES = four ? 20 : 34;
  const get = i => [0x20, i], set = (i, to) => [...to, 0x21, i], simd = code => [0xfd, ...leb(code)];
  const op = code => (...parts) => [...parts.flat(), ...[code].flat()];
  const add = op(0x6a), mul = op(0x6c), shift = op(0x74), addF = op(0x92), mulF = op(0x94), loadF = (at, plus = 0) => [...at, 0x2a, 2, plus];
  const store = (at, what) => [...at, ...what, 0x38, 2, 0], load = (at, plus) => [...at, ...simd(0), 0, plus], short = (at, plus) => [...at, 0x2f, 1, plus];
  const addV = op(simd(0xe4)), mulV = op(simd(0xe6)), splat = op(simd(0x13)), dot = op(simd(0xba)), addI = op(simd(0xae)), floats = op(simd(0xfa));
  const and15 = v => [...v, ...simd(0x0c), ...Array(16).fill(15), ...simd(0x4e)], upper = v => [...v, 0x41, 4, ...simd(0x6d)];
  const first = op(simd(four ? 0x89 : 0x87)), last = op(simd(four ? 0x8a : 0x88)), lane = i => [...get(sums), ...simd(0x1f), i];
  // 16-bit floats by a table.
  const number = plus => loadF(add(get(half16), shift(short(get(p), plus), [0x41, 2]))), half16 = 15;
  const loop = (i, count, ...body) => [...set(i, get(count)), 0x03, 0x40, ...body.flat(), ...get(i), 0x41, 1, 0x6b, 0x22, i, 0x0d, 0, 0x0b];
  const quarter = (v, part, k) => dot(part(v), load(get(x), 8 + 16 * k));
  const [one, two] = four ? [and15(get(low)), upper(get(low))] : [load(get(p), 2), load(get(p), 18)];
  const code = [
    ...set(half16, whole(half)), ...set(row, get(OUT)),
    ...loop(17, ROWS, set(x, get(X)), set(out, get(row)),
      loop(m, M, set(p, get(W)), set(sums, splat([0x43, 0, 0, 0, 0])), [0x43, 0, 0, 0, 0, 0x21, 16],
        loop(b, BLOCKS, four ? set(low, load(get(p), 4)) : [],
          set(dots, addI(addI(quarter(one, first, 0), quarter(one, last, 1)), addI(quarter(two, first, 2), quarter(two, last, 3)))),
          set(sums, addV(get(sums), mulV(floats(get(dots)), splat(mulF(number(0), loadF(get(x))))))),
          four ? set(16, addF(get(16), mulF(number(2), loadF(get(x), 4)))) : [],
          set(p, add(get(p), [0x41, BYTES])), set(x, add(get(x), whole(72)))),
        store(get(out), addF(addF(addF(lane(0), lane(1)), addF(lane(2), lane(3))), get(16))),
        set(out, add(get(out), shift(get(ROWS), [0x41, 2])))),
      set(W, add(get(W), mul(get(BLOCKS), [0x41, BYTES]))), set(row, add(get(row), [0x41, 4])))];
  // 6–11 and 15, 17 i32, 12–14 v128, 16 f32.
  const locals = [5, [6, 0x7f], [3, 0x7b], [1, 0x7f], [1, 0x7d], [1, 0x7f]].flat();
  const body = [...locals, ...code, 0x0b], section = (id, ...bytes) => [id, ...leb(bytes.length), ...bytes];
  const module = new WebAssembly.Module(Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, ...section(1, 1, 0x60, 6, ...Array(6).fill(0x7f), 0),
    ...section(2, 1, 1, 97, 1, 109, 2, 0, 1), ...section(3, 1, 0), ...section(7, 1, 1, 102, 0, 0), ...section(10, 1, ...leb(body.length), ...body)]));
  return new WebAssembly.Instance(module, {a: {m: memory}}).exports.f;
};

/** The float32 that each 16-bit float stands for. */
const halves = to => {
  const bits = new Uint32Array(1), float = new Float32Array(bits.buffer);
  for (let h = 0; h < 65536; h++) { bits[0] = (h & 32767) << 13; to[h] = (h >> 15 ? -1 : 1) * float[0] * 2 ** 112; }
};

class Llama {
  /** Room for a file and for what is computed with it. plain: without WebAssembly. */
  constructor(size, plain = false) {
    this.size = size;
    // Of the table of 16-bit floats.
    this.start = Math.ceil(size / 65536) * 65536;
    const bytes = this.start + 65536 * 4 + 2 ** 24;
    try {
      if (plain || typeof WebAssembly !== "object") throw new TypeError();
      const memory = new WebAssembly.Memory({initial: Math.ceil(bytes / 65536)});
      this.times4 = kernel(memory, this.start, true);
      this.times8 = kernel(memory, this.start, false);
      this.buffer = memory.buffer;
    } catch (error) {
      this.times4 = null;
      try { this.buffer = new ArrayBuffer(bytes); } catch { refuse(`There is not enough memory here for the model: it needs ${Math.round(bytes / 1e6)} MB at once, and as much again to work. Close other tabs, or take a larger machine.`); }
    }
    this.bytes = new Uint8Array(this.buffer, 0, size);
    this.half = new Float32Array(this.buffer, this.start, 65536);
    this.packed = this.start + 65536 * 4;
    halves(this.half);
  }
  /** Once the file is in its place: what it holds. */
  open() {
    const file = readGguf(this.bytes);
    Object.assign(this, readLlama(file));
    this.pieces = new Pieces(file.fields);
    this.count = this.layers * this.heads;
    const widest = Math.max(this.d, this.ff);
    this.result = this.packed + Math.ceil(MOST * widest / 32 * 72 / 16) * 16;
    this.room = Math.floor((this.buffer.byteLength - this.result) / 4);
    if (this.room < Math.max(this.vocab, MOST * this.ff)) refuse(`The model in this file is larger than this page has room for. ${ANOTHER}`);
    this.gains = new Map([this.norm, ...this.blocks.flatMap(block => [block.norm1, block.norm2])].map(tensor => [tensor, new Float32Array(this.bytes.slice(tensor.start, tensor.start + 4 * this.d).buffer)]));
    return this;
  }
  /** Makes m vectors ready for `times`: whole numbers of 16 bits, with a scale for each 32. */
  pack(X, m) {
    this.X = X; this.m = m;
    this.width = X.length / m;
    if (!this.times4) return;
    const floats = new Float32Array(this.buffer), wholes = new Int16Array(this.buffer);
    for (let i = 0, at = this.packed; i < X.length; i += 32, at += 72) {
      let most = 0, sum = 0;
      // NaN stays.
      for (let j = i; j < i + 32; j++) most = Math.max(most, Math.abs(X[j]));
      const scale = most / 32767, by = most ? 1 / scale : 0;
      floats[at / 4] = scale;
      for (let j = 0, to = at / 2 + 4; j < 32; j++) sum += wholes[to + j] = Math.round(X[i + j] * by);
      floats[at / 4 + 1] = scale * sum;
    }
  }
  /** The packed vectors times a matrix of the file, (m, rows): a view that holds until the next call. */
  times({shape: [rows], start, how}) {
    const {m} = this, out = new Float32Array(this.buffer, this.result, m * rows);
    if (this.times4) (how === "Q4_1" ? this.times4 : this.times8)(start, rows, this.width / 32, this.packed, m, this.result);
    else this.plainly(rows, start, how, out);
    return out;
  }
  plainly(rows, start, how, out) {
    const {X, m, width} = this, row = new Float32Array(width);
    for (let r = 0; r < rows; r++) {
      this.row(how, start, r, width, row);
      for (let t = 0; t < m; t++) {
        let a = 0, b = 0, c = 0, d = 0;
        for (let i = 0, at = t * width; i < width; i += 4, at += 4) { a += row[i] * X[at]; b += row[i + 1] * X[at + 1]; c += row[i + 2] * X[at + 2]; d += row[i + 3] * X[at + 3]; }
        out[t * rows + r] = a + b + c + d;
      }
    }
  }
  /** A row of a matrix, as numbers. */
  row(how, start, r, width, row) {
    const {bytes, half} = this;
    if (how === "Q8_0") for (let i = 0, p = start + r * width / 32 * 34; i < width; p += 34) {
      const scale = half[bytes[p] | bytes[p + 1] << 8];
      for (let k = 2; k < 34; k++) row[i++] = scale * (bytes[p + k] << 24 >> 24);
    } else for (let i = 0, p = start + r * width / 32 * 20; i < width; i += 32, p += 20) {
      const scale = half[bytes[p] | bytes[p + 1] << 8], least = half[bytes[p + 2] | bytes[p + 3] << 8];
      for (let k = 0; k < 16; k++) { const two = bytes[p + 4 + k]; row[i + k] = scale * (two & 15) + least; row[i + k + 16] = scale * (two >> 4) + least; }
    }
    return row;
  }
  /** Rows at a mean square of 1, times gain; or as the switch says. */
  normed(X, tensor, norm = "rms") {
    const gain = this.gains.get(tensor), {d} = this, Y = new Float32Array(X.length);
    if (norm === "none") { Y.set(X); return Y; }
    for (let from = 0; from < X.length; from += d) {
      let mean = 0, square = 0;
      if (norm === "mean") { for (let i = 0; i < d; i++) mean += X[from + i]; mean /= d; }
      for (let i = 0; i < d; i++) square += (X[from + i] - mean) ** 2;
      const by = 1 / Math.sqrt(square / d + this.eps);
      for (let i = 0; i < d; i++) Y[from + i] = (X[from + i] - mean) * by * gain[i];
    }
    return Y;
  }
  /** Turns the heads of m rows by their positions, in place. */
  turn(X, heads, start, {positions, pairing, base}) {
    if (positions === "none") return;
    const {dHead} = this, pairs = dHead / 2, width = heads * dHead, step = pairing === "pairs" ? 2 : 1, other = pairing === "pairs" ? 1 : pairs;
    for (let i = 0; i < pairs; i++) {
      const speed = (base || this.base) ** (-2 * i / dHead);
      for (let row = 0, at = start; row < X.length; row += width, at++) {
        const cos = Math.cos(at * speed), sin = Math.sin(at * speed);
        for (let a = row + step * i, h = 0; h < heads; h++, a += dHead) { const x = X[a], y = X[a + other]; X[a] = x * cos - y * sin; X[a + other] = x * sin + y * cos; }
      }
    }
  }
  // Where a text is read to: keys and values of each layer, and for each token what all heads look at
  // and what the stream is after each block.
  session(way = RIGHT) {
    const {dKv, layers} = this, caches = () => Array.from({length: layers}, () => new Float32Array(MOST * dKv));
    const off = new Set(way.off), cut = new Set(way.cuts.map(([head, i, j]) => (head * MOST + i) * MOST + j));
    return {way, off, cut, ids: [], keys: caches(), values: caches(), maps: [], stream: []};
  }
  /** Reads ids into a session, only those that are new; `breathe` is awaited now and then, and may throw. */
  async read(session, ids, breathe = () => 0, tell = () => 0) {
    const whole = session.way.mask === "none";
    let kept = 0;
    while (kept < ids.length && session.ids[kept] === ids[kept]) kept++;
    // Every token sees every other.
    if (whole && kept < Math.max(ids.length, session.ids.length)) kept = 0;
    for (const part of ["ids", "maps", "stream"]) session[part].length = kept;
    while (session.ids.length < ids.length) {
      const left = ids.length - session.ids.length;
      await this.chunk(session, ids.slice(session.ids.length, whole ? MOST : session.ids.length + 32), breathe, layer => tell({left, layer}));
    }
    return ids.length - kept;
  }
  async chunk(session, ids, breathe, tell) {
    const {d, ff, layers, heads, dKv, table} = this, {way} = session, m = ids.length, start = session.ids.length, x = new Float32Array(m * d);
    ids.forEach((id, t) => this.row(table.how, table.start, id, d, x.subarray(t * d, t * d + d)));
    const seen = ids.map((_, t) => this.allowed(start + t, start + m, way));
    const stream = ids.map(() => new Float32Array((layers + 1) * d)), maps = ids.map((_, t) => new Uint16Array(this.count * (way.mask === "none" ? start + m : start + t + 1)));
    const keep = after => stream.forEach((one, t) => one.set(x.subarray(t * d, t * d + d), after * d));
    const add = y => { for (let i = 0; i < x.length; i++) x[i] += y[i]; };
    keep(0);
    for (let layer = 0; layer < layers; layer++) {
      const block = this.blocks[layer];
      this.pack(this.normed(x, block.norm1, way.norm), m);
      const q = this.times(block.q).slice(), k = this.times(block.k).slice();
      session.values[layer].set(this.times(block.v), start * dKv);
      this.turn(q, heads, start, way);
      this.turn(k, this.kvHeads, start, way);
      session.keys[layer].set(k, start * dKv);
      this.pack(this.attend(session, layer, q, seen, maps), m);
      add(this.times(block.o));
      this.pack(this.normed(x, block.norm2, way.norm), m);
      const gate = this.times(block.gate).slice(), up = this.times(block.up);
      for (let i = 0; i < m * ff; i++) gate[i] *= up[i] / (1 + Math.exp(-gate[i]));
      this.pack(gate, m);
      add(this.times(block.down));
      // A vector of another run in the place of this one's.
      const {patch} = session;
      if (patch?.layer === layer && patch.at >= start && patch.at < start + m) x.set(patch.vector, (patch.at - start) * d);
      keep(layer + 1);
      tell(layer + 1);
      await breathe();
    }
    session.ids.push(...ids);
    session.maps.push(...maps);
    session.stream.push(...stream);
  }
  /** The keys that token i may see, of n. */
  allowed(i, n, {mask, window, sinks}) {
    const last = {causal: i + 1, strict: i, none: n}[mask], keys = [];
    for (let j = 0; j < last; j++) if (!window || i - j < window || j < sinks) keys.push(j);
    return Int32Array.from(keys);
  }
  /** What a score is multiplied by. */
  scale({scale}) { return {root: 1 / Math.sqrt(this.dHead), none: 1, d_k: 1 / this.dHead, d_model: 1 / Math.sqrt(this.d)}[scale]; }
  /** The query of token i in a head, and the keys that it sees; as the way says, and not turned. */
  pairs({ids, way, cut, stream}, head, i) {
    const {d, dHead, dKv, heads, kvHeads} = this, n = ids.length, layer = Math.floor(head / heads), h = head % heads, own = Math.floor(h / (heads / kvHeads)) * dHead;
    const block = this.blocks[layer], x = new Float32Array(n * d), seen = [...this.allowed(i, n, way)].filter(j => !cut.has((head * MOST + i) * MOST + j));
    stream.forEach((one, t) => x.set(one.subarray(layer * d, layer * d + d), t * d));
    this.pack(this.normed(x, block.norm1, way.norm), n);
    const q = this.times(block.q).slice(), k = this.times(block.k).slice(), part = (from, X) => Array.from(X.subarray(from, from + dHead));
    const both = () => ({query: part(i * d + h * dHead, q), keys: seen.map(j => part(j * dKv + own, k))}), plain = both();
    this.turn(q, heads, 0, way);
    this.turn(k, kvHeads, 0, way);
    return {seen, by: this.scale(way), plain, turned: both()};
  }
  /** What the heads of a layer bring, (m, d), before W_o; their weights are kept in `maps`. */
  attend({way, off, cut, keys, values, ids}, layer, q, seen, maps) {
    const {d, heads, kvHeads, dHead, dKv} = this, K = keys[layer], V = values[layer], out = new Float32Array(q.length), scores = new Float64Array(MOST);
    const by = this.scale(way);
    seen.forEach((may, t) => {
      const i = ids.length + t, length = maps[t].length / this.count;
      for (let h = 0; h < heads; h++) {
        const head = layer * heads + h, from = t * d + h * dHead, own = Math.floor(h / (heads / kvHeads)) * dHead;
        const some = cut.size ? may.filter(j => !cut.has((head * MOST + i) * MOST + j)) : may;
        let top = -Infinity, sum = 0;
        for (let s = 0; s < some.length; s++) {
          let dot = 0;
          for (let c = 0, a = some[s] * dKv + own; c < dHead; c++) dot += q[from + c] * K[a + c];
          scores[s] = dot *= by;
          // NaN, too.
          if (!(dot <= top)) top = dot;
        }
        for (let s = 0; s < some.length; s++) sum += scores[s] = Math.exp(scores[s] - top);
        for (let s = 0; s < some.length; s++) {
          const weight = scores[s] / sum;
          maps[t][head * length + some[s]] = Math.round(65535 * weight);
          if (!off.has(head)) for (let c = 0, a = some[s] * dKv + own; c < dHead; c++) out[from + c] += weight * V[a + c];
        }
      }
    });
    return out;
  }
  /** Logits after some blocks, of rows of the stream one after the other: (rows, vocab), a view. */
  logits(rows, norm = "rms") {
    this.pack(this.normed(rows, this.norm, norm), rows.length / this.d);
    return this.times(this.out);
  }
  /** Logits for what follows token i. */
  next(session, i = session.ids.length - 1) { return this.logits(session.stream[i].subarray(this.layers * this.d), session.way.norm); }
}

// Colours of paint codes, the same as those of the window (gcspy_client/model/palette.py and colour.py; tests/client/page compares them).
// A paint code is a byte a tile: 0 canvas, 1 background, 2 unused, 3 zero, 4 unknown, 5 low … 254 high, 255 overflow.
// OKLab is of B. Ottosson (2020), the matrices of colour vision of Machado, Oliveira and Fernandes (2009).

const CODE = { CANVAS: 0, BACKGROUND: 1, UNUSED: 2, ZERO: 3, UNKNOWN: 4, LOW: 5, HIGH: 254, OVERFLOW: 255 };
const LEVELS = CODE.HIGH - CODE.LOW + 1;
const CATEGORIES = 12;

const Colour = (() => {
  const CONES_FROM_LINEAR = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
  ];
  const LAB_FROM_CONES = [
    [0.2104542553, 0.793617785, -0.0040720468],
    [1.9779984951, -2.428592205, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
  ];
  const VISIONS = [
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
  ];
  const inverse = ([[a, b, c], [d, e, f], [g, h, i]]) => {
    const det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
    return [
      [(e * i - f * h) / det, (c * h - b * i) / det, (b * f - c * e) / det],
      [(f * g - d * i) / det, (a * i - c * g) / det, (c * d - a * f) / det],
      [(d * h - e * g) / det, (b * g - a * h) / det, (a * e - b * d) / det],
    ];
  };
  const LINEAR_FROM_CONES = inverse(CONES_FROM_LINEAR), CONES_FROM_LAB = inverse(LAB_FROM_CONES);
  const times = (m, [x, y, z]) => m.map((row) => row[0] * x + row[1] * y + row[2] * z);
  const clip = (x, low, high) => Math.min(Math.max(x, low), high);
  const linearFromLab = (lab) => times(LINEAR_FROM_CONES, times(CONES_FROM_LAB, lab).map((x) => x ** 3));
  const labFromLinear = (linear) => times(LAB_FROM_CONES, times(CONES_FROM_LINEAR, linear).map(Math.cbrt));
  const rgb = (lab) => linearFromLab(lab).map((x) => {
    const value = clip(x, 0, 1);
    return 255 * (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055);
  });
  const labFromRgb = (values) => labFromLinear(values.map((x) => {
    const share = x / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }));
  // OKLab of a polar colour, with as little chroma taken away as the gamut of a screen asks.
  const fit = (lightness, chroma, hue) => {
    const angle = (hue * Math.PI) / 180;
    const lab = (radius) => [lightness, radius * Math.cos(angle), radius * Math.sin(angle)];
    const inside = (radius) => linearFromLab(lab(radius)).every((x) => x > -1e-6 && x < 1 + 1e-6);
    let low = inside(chroma) ? chroma : 0, high = chroma;
    for (let n = 0; n < 18; n++) {
      const middle = (low + high) / 2;
      if (inside(middle)) low = middle;
      else high = middle;
    }
    return lab(low);
  };
  const seen = (vision, lab) => labFromLinear(times(VISIONS[vision], linearFromLab(lab).map((x) => clip(x, 0, 1))).map((x) => clip(x, 0, 1)));
  const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  const seenByAll = (colours) => VISIONS.map((_, vision) => colours.map((lab) => seen(vision, lab)));
  return { rgb, labFromRgb, fit, distance, seenByAll };
})();

const Palettes = (() => {
  const LOOKS = {
    dark: { canvas: 0.19, unused: 0.315, zero: 0.375, low: 0.45, high: 0.93, hues: [290, 105], chromas: [0.13, 0.16], line: 0.97 },
    light: { canvas: 0.985, unused: 0.93, zero: 0.87, low: 0.8, high: 0.29, hues: [105, 295], chromas: [0.11, 0.13], line: 0.15 },
    "dark-contrast": { canvas: 0, unused: 0.29, zero: 0.37, low: 0.47, high: 0.97, hues: [290, 105], chromas: [0.14, 0.12], line: 1 },
    "light-contrast": { canvas: 1, unused: 0.92, zero: 0.85, low: 0.77, high: 0.2, hues: [105, 295], chromas: [0.12, 0.11], line: 0 },
  };
  const OVERFLOW_CHOICES = [[0.62, 0.22, 35], [0.7, 0.24, 330], [0.86, 0.15, 200]];
  const BEYOND_CHOICES = {
    dark: [[0.99, 0.01, 105], [0.9, 0.07, 160], [0.86, 0.07, 230]],
    light: [[0.13, 0.02, 295], [0.3, 0.07, 160], [0.34, 0.07, 230]],
  };
  const UNKNOWN_CHOICES = [[0.56, 0.02, 320], [0.6, 0.13, 70], [0.62, 0.13, 320]];
  const GREYS = [[0.62, 0.02, 320], [0.45, 0.02, 320], [0.78, 0.02, 320]];
  const ground = (theme) => (theme.startsWith("dark") ? "dark" : "light");

  const worst = (candidates, rivals) => {
    const ours = Colour.seenByAll(candidates), theirs = Colour.seenByAll(rivals);
    return candidates.map((_, n) => Math.min(...ours.map((seen, vision) => Math.min(...theirs[vision].map((one) => Colour.distance(seen[n], one))))));
  };
  const farthest = (choices, rivals) => {
    const candidates = choices.map(([l, c, h]) => Colour.fit(l, c, h));
    const apart = worst(candidates, rivals);
    return candidates[apart.indexOf(Math.max(...apart))];
  };
  const quiet = (theme, hue) => {
    const looks = LOOKS[theme];
    return [[looks.canvas, 0.006, 260], [looks.canvas, 0.006, 260], [looks.unused, 0.004, 260], [looks.zero, 0.035, hue]].map(([l, c, h]) => Colour.fit(l, c, h));
  };
  const steps = (count, make) => Array.from({ length: count }, (_, n) => make(n / (count - 1)));

  const assemble = (theme, ramp, calm, overflow, unknown) => {
    const labs = [...calm, unknown, ...ramp, overflow];
    const colours = labs.map((lab) => Colour.rgb(lab).map((x) => Math.round(Math.min(Math.max(x, 0), 255))));
    const pixels = new Uint32Array(256), inks = new Array(256), css = new Array(256);
    const contrast = labs.map((lab) => {
      const [r, g, b] = Colour.rgb(lab).map((x) => {
        const share = Math.min(Math.max(x, 0), 255) / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      const light = 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
      return [light / 0.05, 1.05 / light];
    });
    const [hatched, ground] = [contrast[CODE.UNKNOWN], contrast[CODE.CANVAS]];
    contrast[CODE.UNKNOWN] = [Math.min(hatched[0], ground[0]), Math.min(hatched[1], ground[1])];
    colours.forEach(([r, g, b], code) => {
      pixels[code] = (255 << 24) | (b << 16) | (g << 8) | r; // the bytes of a canvas are red, green, blue, alpha
      css[code] = `rgb(${r},${g},${b})`;
      inks[code] = contrast[code][0] >= contrast[code][1] ? "#000" : "#fff";
    });
    const line = Colour.rgb([LOOKS[theme].line, 0, 0]).map(Math.round);
    return { pixels, css, inks, line: `rgb(${line})`, colours };
  };

  const sequential = (theme, colour, quietAbove) => {
    const looks = LOOKS[theme];
    const between = (t) => looks.low + (looks.high - looks.low) * t;
    const hint = Colour.labFromRgb(colour || [0, 0, 0]);
    const chroma = Math.hypot(hint[1], hint[2]);
    let ramp, hue;
    if (colour && chroma >= 0.04) {
      hue = (Math.atan2(hint[2], hint[1]) * 180) / Math.PI;
      ramp = steps(LEVELS, (t) => Colour.fit(between(t), Math.min(chroma, 0.2) * (0.55 + 0.45 * Math.sin(Math.PI * t)), hue));
    } else {
      const [[h0, h1], [c0, c1]] = [looks.hues, looks.chromas];
      hue = h0;
      ramp = steps(LEVELS, (t) => Colour.fit(between(t), c0 + (c1 - c0) * t - 0.12 * t * (1 - t), h0 + (h1 - h0) * t));
    }
    const calm = quiet(theme, hue);
    const overflow = farthest(quietAbove ? BEYOND_CHOICES[ground(theme)] : OVERFLOW_CHOICES, [...ramp, ...calm]);
    const unknown = farthest(UNKNOWN_CHOICES, [...ramp, ...calm, overflow]);
    return assemble(theme, ramp, calm, overflow, unknown);
  };

  const categoryColours = (theme) => {
    const span = ground(theme) === "dark" ? [0.5, 0.6, 0.7, 0.8, 0.9] : [0.35, 0.45, 0.55, 0.65, 0.75];
    const grid = span.flatMap((light) => Array.from({ length: 24 }, (_, n) => [light, 0.15, 15 + 15 * n]));
    const candidates = grid.map(([l, c, h]) => Colour.fit(l, c, h));
    const nearness = grid.map(([l, , h]) => Math.abs(l - span[2]) + Math.abs(h - 240));
    const taken = [nearness.indexOf(Math.min(...nearness))];
    const seen = Colour.seenByAll(candidates);
    const apart = worst(candidates, quiet(theme, LOOKS[theme].hues[0]));
    while (taken.length < CATEGORIES) {
      const latest = taken[taken.length - 1];
      candidates.forEach((_, n) => {
        for (const each of seen) apart[n] = Math.min(apart[n], Colour.distance(each[n], each[latest]));
      });
      taken.push(apart.indexOf(Math.max(...apart)));
    }
    return taken.map((n) => candidates[n]);
  };

  const categorical = (theme, count, others) => {
    const chosen = categoryColours(theme).slice(0, Math.max(1, Math.min(count, CATEGORIES)));
    const ramp = Array.from({ length: LEVELS }, (_, n) => chosen[n % chosen.length]);
    if (others) {
      const grey = Colour.fit(ground(theme) === "dark" ? 0.5 : 0.74, 0.006, 260);
      ramp.fill(grey, chosen.length);
    }
    const calm = quiet(theme, LOOKS[theme].hues[0]);
    const overflow = farthest(OVERFLOW_CHOICES, [...chosen, ...calm]);
    const unknown = farthest(GREYS, [...chosen, ...calm, overflow]);
    return assemble(theme, ramp, calm, overflow, unknown);
  };

  const made = new Map();
  // The palette in which a stream is painted. Worked out once for each kind of stream.
  const of = (schema, theme) => {
    const named = schema.namesFrom !== null, isEnum = named || schema.presentation === PRESENTATION.ENUM;
    const key = JSON.stringify(isEnum ? [theme, named ? CATEGORIES : schema.names.length, named] : [theme, schema.colour, schema.threshold, "ramp"]);
    if (!made.has(key)) {
      if (made.size > 64) made.clear();
      made.set(key, isEnum ? categorical(theme, named ? CATEGORIES : schema.names.length, named) : sequential(theme, schema.colour, schema.threshold));
    }
    return made.get(key);
  };
  return { of };
})();

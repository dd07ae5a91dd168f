// Scales of a chart, as chart/scale.py has them: values to places along an axis, and round numbers beside it.
const WIDE = 1000, CONSTANT = 1e-12, FACTORS = [1, 2, 5], EDGE = 1e-9;
const decimal = (count, power) => Number(`${count}e${power}`);
const onScale = (scale, value) => scale.logarithmic ? Math.log10(value) : value;

function place(scale, value) {
  const low = onScale(scale, scale.low), high = onScale(scale, scale.high);
  return (onScale(scale, value) - low) / (high - low);
}

function valueAt(scale, share) {
  const low = onScale(scale, scale.low), high = onScale(scale, scale.high);
  const value = low + share * (high - low);
  return scale.logarithmic ? 10 ** value : value;
}

function ticks(scale, most) {
  const decimals = scale.logarithmic ? logTicks(scale, most) : linearTicks(scale, most);
  const texts = tickTexts(decimals.map(([count, power]) => [count, power + (scale.percent ? 2 : 0)]), scale.percent);
  return decimals.map((one, index) => ({ value: decimal(...one), text: texts[index] }));
}

function linearTicks(scale, most) {
  const rough = (scale.high - scale.low) / most;
  let power = Math.floor(Math.log10(rough)), factor;
  const steps = [...FACTORS.map((one) => [one, power]), [1, power + 1]];
  [factor, power] = steps.find((step) => decimal(...step) >= rough * (1 - EDGE)) || steps[3];
  if (scale.whole && power < 0) [factor, power] = [1, 0];
  const step = decimal(factor, power);
  const first = Math.ceil(scale.low / step - EDGE), last = Math.floor(scale.high / step + EDGE);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => [(first + index) * factor, power]);
}

function logTicks(scale, most) {
  const first = Math.floor(Math.log10(scale.low)), last = Math.ceil(Math.log10(scale.high));
  const powers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const inside = (decimals) => decimals.filter(([count, power]) => !(scale.whole && power < 0)
    && scale.low * (1 - EDGE) <= decimal(count, power) && decimal(count, power) <= scale.high * (1 + EDGE));
  const fine = inside(powers.flatMap((power) => FACTORS.map((factor) => [factor, power])));
  if (fine.length <= most + 1) return fine.length > 1 ? fine : linearTicks(scale, most);
  const decades = inside(powers.map((power) => [1, power]));
  return decades.filter((_, index) => index % Math.ceil(decades.length / most) === 0);
}

function fit(values, log, room, percent, whole) {
  const known = values.filter(Number.isFinite);
  const made = (low, high, logarithmic) => ({ low, high, logarithmic, percent, whole });
  if (!known.length) return made(log ? 0.1 : 0, 1, Boolean(log));
  let low = known.reduce((one, other) => Math.min(one, other)), high = known.reduce((one, other) => Math.max(one, other));
  if (log || (log === null && low > 0 && high > WIDE * low)) return made(...roundEnds(low, high), true);
  if (room && low >= 0 && low < high / 2) low = 0;
  const span = high - low;
  if (span <= CONSTANT * Math.max(Math.abs(low), Math.abs(high))) {
    const margin = 0.1 * Math.abs(high) || 1;
    return made(low - margin, high + margin, false);
  }
  return made(low - (low ? room * span : 0), high + room * span, false);
}

function roundEnds(low, high) {
  const first = Math.floor(Math.log10(low)) - 1, last = Math.ceil(Math.log10(high)) + 1;
  const numbers = [];
  for (let power = first; power <= last; power++) FACTORS.forEach((factor) => numbers.push(decimal(factor, power)));
  const below = Math.max(...numbers.filter((one) => one <= low * (1 + EDGE)));
  const above = Math.min(...numbers.filter((one) => one >= high * (1 - EDGE)));
  if (below < above) return [below, above];
  return [Math.max(...numbers.filter((one) => one < low)), Math.min(...numbers.filter((one) => one > high))];
}

function tickTexts(decimals, percent) {
  const unit = percent ? " %" : "";
  const largest = Math.max(0, ...decimals.map((one) => Math.abs(decimal(...one))));
  if (largest >= 1e7 || Math.min(0, ...decimals.map(([, power]) => power)) < -4)
    return decimals.map((one) => scientific(...one) + unit);
  return decimals.map(([count, power]) =>
    (count ? withCommas(decimal(count, power).toFixed(Math.max(0, -power))) : "0").replace("-", "−") + unit);
}

function scientific(count, power) {
  if (!count) return "0";
  const digits = String(Math.abs(count));
  const mantissa = (digits[0] + "." + digits.slice(1)).replace(/\.?0*$/, "");
  const raised = [...String(power + digits.length - 1)].map((one) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(one)]).join("");
  return (count < 0 ? "−" : "") + (mantissa === "1" ? "" : mantissa + "×") + "10" + raised;
}

const withCommas = (text) => text.replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");

// A number with a few digits, as Python's format code g writes it.
function general(value, digits) {
  if (!Number.isFinite(value)) return "–";
  const [mantissa, power] = value.toExponential(digits - 1).split("e").map(Number);
  if (power < -4 || power >= digits && power > 6)
    return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  return withCommas(String(power >= digits ? Math.round(value) : Number(value.toPrecision(digits))));
}

const written = (value, percent) =>
  !Number.isFinite(value) ? "–" : percent ? `${(100 * value).toFixed(2)} %` : general(value, 4);

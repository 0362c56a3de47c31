// Draws the panels in window.PAGE with Grafana's own components: what a person sees, without a Grafana server.
import {
  createTheme,
  dateTime,
  FieldColorModeId,
  FieldType,
  getDisplayProcessor,
  ThemeContext,
  type DataFrame,
  type DisplayValue,
  type Field,
  VizOrientation,
} from '@grafana/data';
import { BarGauge, BigValue, GlobalStyles, PanelChrome, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { createRoot } from 'react-dom/client';

type Series = { name: string; times: number[]; values: (number | null)[] };
type Row = Record<string, string | number>;
type Panel = {
  type: string;
  title: string;
  description: string;
  box: { left: number; top: number; width: number; height: number };
  fieldConfig: { defaults: any; overrides: any[] };
  options: any;
  series: Series[];
  columns: string[];
  rows: Row[];
};
type Page = { title: string; variables: string; panels: Panel[]; from: number; to: number; width: number; height: number };

const page = (window as any).PAGE as Page;
const theme = createTheme({ colors: { mode: 'dark' } });
const range = { from: dateTime(page.from), to: dateTime(page.to), raw: { from: dateTime(page.from), to: dateTime(page.to) } };

function configured(field: any, panel: Panel, index: number): Field {
  const { defaults, overrides } = panel.fieldConfig;
  const config = { ...defaults, custom: { ...defaults.custom } };
  for (const { matcher, properties } of overrides) {
    if (matcher.id === 'byName' && matcher.options === field.name) {
      for (const { id, value } of properties) {
        id.startsWith('custom.') ? (config.custom[id.slice('custom.'.length)] = value) : (config[id] = value);
      }
    }
  }
  config.color ??= { mode: panel.type === 'timeseries' ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds };
  config.displayName = field.name;
  const made = { ...field, config, state: { seriesIndex: index } };
  made.display = getDisplayProcessor({ field: made, theme, timeZone: 'utc' });
  return made;
}

function frames(panel: Panel): DataFrame[] {
  return panel.series.map((series, index) => ({
    refId: String(index),
    length: series.times.length,
    fields: [
      { name: 'Time', type: FieldType.time, config: {}, values: series.times },
      configured({ name: series.name, type: FieldType.number, values: series.values }, panel, index),
    ],
  }));
}

function tableFrame(panel: Panel): DataFrame {
  const fields = panel.columns.map((name, index) => {
    const values = panel.rows.map((row) => row[name] ?? '');
    const known = values.filter((value) => value !== '');
    const numeric = known.length > 0 && known.every((value) => typeof value === 'number');
    return configured(numeric ? { name, type: FieldType.number, values: values.map((value) => (value === '' ? null : value)) } : { name, type: FieldType.string, values }, panel, index);
  });
  return { length: panel.rows.length, fields };
}

function lastOf(series: Series): number | null {
  return series.values.findLast((value) => value !== null) ?? null;
}

function Content({ panel, width, height }: { panel: Panel; width: number; height: number }) {
  const found = panel.type === 'table' ? [] : frames(panel);
  if (panel.type !== 'table' && panel.type !== 'stat' && found.length === 0) {
    return <div style={{ padding: 20 }}>No data</div>; // as Grafana's panels say it, which draw nothing else then
  }
  if (panel.type === 'timeseries') {
    return <TimeSeries frames={found} structureRev={1} timeRange={range} timeZone="utc" width={width} height={height} legend={panel.options.legend} options={panel.options} />;
  }
  if (panel.type === 'stat') {
    const [frame] = found;
    const field = frame?.fields[1];
    const value: DisplayValue = field ? field.display!(lastOf(panel.series[0])) : { text: panel.fieldConfig.defaults.noValue, numeric: NaN };
    if (field) {
      value.title = panel.series[0].name;
    }
    const sparkline = field && panel.options.graphMode !== 'none' && panel.series[0].times.length > 1 ? { x: frame.fields[0], y: field } : undefined;
    return <BigValue value={value} sparkline={sparkline} width={width} height={height} theme={theme} colorMode={panel.options.colorMode} graphMode={panel.options.graphMode} textMode={panel.options.textMode} justifyMode={panel.options.justifyMode} />;
  }
  if (panel.type === 'bargauge') {
    const values = found.map((frame, index) => ({ field: frame.fields[1], value: { ...frame.fields[1].display!(lastOf(panel.series[index])), title: panel.series[index].name } }));
    const most = panel.fieldConfig.defaults.max ?? Math.max(...values.map(({ value }) => value.numeric));
    return (
      <VizRepeater source={panel} renderCounter={0} getValues={() => values} orientation={VizOrientation.Horizontal} width={width} height={height} itemSpacing={8} minVizHeight={16} minVizWidth={8} maxVizHeight={300}
        getAlignmentFactors={(all) => ({ title: all.map(({ value }) => value.title).reduce((a, b) => (a!.length > b!.length ? a : b), '')!, text: all.map(({ value }) => value.text + (value.suffix ?? '')).reduce((a, b) => (a.length > b.length ? a : b), '') })}
        renderValue={({ value, width, height, alignmentFactors }) => (
          <BarGauge value={value.value} width={width} height={height} field={{ ...value.field.config, min: 0, max: most }} display={value.field.display} theme={theme} orientation={VizOrientation.Horizontal} displayMode={panel.options.displayMode} itemSpacing={8} lcdCellWidth={8} alignmentFactors={alignmentFactors} valueDisplayMode={panel.options.valueMode} namePlacement={panel.options.namePlacement} showUnfilled />
        )} />
    );
  }
  const frame = tableFrame(panel);
  return frame.length ? <TableNG data={frame} width={width} height={height} fieldConfig={panel.fieldConfig} timeRange={range} /> : <div style={{ padding: 20 }}>{panel.fieldConfig.defaults.noValue}</div>;
}

function Drawn({ panel }: { panel: Panel }) {
  const { left, top, width, height } = panel.box;
  const place = { position: 'absolute', left, top, width, height } as const;
  if (panel.type === 'row') {
    return <div style={{ ...place, font: '500 16px Inter, Helvetica, sans-serif', paddingTop: 8 }}>{panel.title}</div>;
  }
  return (
    <div style={place}>
      <PanelChrome title={panel.title} description={panel.description} width={width} height={height} padding={panel.type === 'table' ? 'none' : 'md'}>
        {(innerWidth: number, innerHeight: number) => <Content panel={panel} width={innerWidth} height={innerHeight} />}
      </PanelChrome>
    </div>
  );
}

createRoot(document.getElementById('root')!).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles isExtensionSidebarOpen={false} />
    <div style={{ position: 'relative', width: page.width, height: page.height, background: theme.colors.background.canvas }}>
      <div style={{ position: 'absolute', left: 8, top: 10, font: '500 20px Inter, Helvetica, sans-serif' }}>{page.title}</div>
      <div style={{ position: 'absolute', right: 8, top: 14, color: theme.colors.text.secondary }}>{page.variables}</div>
      {page.panels.map((panel, index) => (
        <Drawn key={index} panel={panel} />
      ))}
    </div>
  </ThemeContext.Provider>
);

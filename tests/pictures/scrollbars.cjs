// A module of an older kind: for a module of today its default export is the whole of it, and Grafana asks for the component.
module.exports = require('./node_modules/react-custom-scrollbars-2').default;

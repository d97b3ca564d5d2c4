;; A plugin as WebAssembly text: replies with the request, letters moved by 13 places. A module from any compiler that
;; exports `memory` and `handle` runs the same, within the same limits.
(module
  (import "host" "host_log" (func $log (param i32 i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "no room for the reply")
  (func $moved (param $c i32) (param $first i32) (result i32)
    (i32.add (local.get $first)
      (i32.rem_u (i32.add (i32.sub (local.get $c) (local.get $first)) (i32.const 13)) (i32.const 26))))
  (func (export "handle") (param $in i32) (param $n i64) (param $out i32) (param $room i64) (result i64)
    (local $i i32) (local $c i32)
    (if (i64.gt_s (local.get $n) (local.get $room))
      (then (drop (call $log (i32.const 16) (i64.const 21))) (return (i64.const 0))))
    (block $done
      (loop $next
        (br_if $done (i64.ge_s (i64.extend_i32_u (local.get $i)) (local.get $n)))
        (local.set $c (i32.load8_u (i32.add (local.get $in) (local.get $i))))
        (if (i32.lt_u (i32.sub (local.get $c) (i32.const 97)) (i32.const 26))
          (then (local.set $c (call $moved (local.get $c) (i32.const 97)))))
        (if (i32.lt_u (i32.sub (local.get $c) (i32.const 65)) (i32.const 26))
          (then (local.set $c (call $moved (local.get $c) (i32.const 65)))))
        (i32.store8 (i32.add (local.get $out) (local.get $i)) (local.get $c))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $n)))

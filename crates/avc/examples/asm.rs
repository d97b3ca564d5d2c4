use avc::*;
use flask::*;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
struct T;
impl SecurityServer for T {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        Ok(Seqno(0))
    }
    fn compute_av(&self, _: Question) -> Result<Decision, Unreachable> {
        Ok(Decision { allowed: AccessVector::ALL, ..Decision::DENY_ALL })
    }
    fn compute_create(&self, q: Question, _: Option<&str>) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn context_to_sid(&self, c: &str) -> Result<Sid, LabelError> {
        Err(LabelError::InvalidContext(c.to_owned()))
    }
    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        Err(LabelError::UnknownSid(sid))
    }
    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        Ok(LabelRules::default())
    }
    fn explain(&self, _: Question, _: AccessVector) -> Result<Explanation, Unreachable> {
        Ok(Explanation::default())
    }
}
#[inline(never)]
#[unsafe(no_mangle)]
pub fn asm_probe(avc: &Avc, q: &Question, r: AccessVector, h: &Hint) -> bool {
    avc.has_perm(*q, r, h).is_ok_and(Verdict::granted)
}
fn time(name: &str, mut f: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let t = Instant::now();
        for _ in 0..20_000_000 {
            f()
        }
        best = best.min(t.elapsed().as_secs_f64() / 20e6 * 1e9);
    }
    println!("{name} {best:.2} ns");
}
fn main() {
    let avc = Avc::new(Arc::new(T));
    let q =
        Question { ssid: Sid::new(3).unwrap(), tsid: Sid::new(4).unwrap(), tclass: Class::File };
    let h = Hint::default();
    asm_probe(&avc, &q, AccessVector(1), &h);
    time("base: black_box all", || {
        black_box(black_box(q).ssid.get() as u64 + black_box(AccessVector(2)).0 as u64);
        black_box(&h);
    });
    time("base: black_box ref", || {
        let q = black_box(&q);
        black_box((q.ssid.get() ^ q.tsid.get()) as u64 + black_box(AccessVector(2)).0 as u64);
        black_box(&h);
    });
    time("all black_box", || {
        black_box(
            avc.has_perm(black_box(q), black_box(AccessVector(2)), black_box(&h))
                .is_ok_and(Verdict::granted),
        );
    });
    time("ref black_box", || {
        black_box(avc.has_perm(*black_box(&q), AccessVector(2), &h).is_ok_and(Verdict::granted));
    });
    time("call", || {
        black_box(asm_probe(black_box(&avc), &q, AccessVector(2), &h));
    });
}
